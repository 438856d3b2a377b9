// Plays apps on siddhi-core under a virtual clock: one JSON object a line in, one a line out.
//
// In:  {"app": text, "start": ms, "queries": [names], "streams": [names], "steps": [step, ..]}
//      step: {"stream": S, "ts": ms, "data": [..]} one event; {"stream": S, "events": [[ms, [..]]]}
//      an array as one chunk; {"ts": ms} time alone; {"ask": text} an on-demand query
// Out: {"rows": [[query or stream, "current" or "expired", clock ms, [..]], ..],
//       "answers": [[[..], ..] or null, ..]} or {"error": text}
//
// Time moves a millisecond at a time, and TICKS_PER_MS times over: of several timers of one
// scheduler that are due together the engine runs one per change of its clock.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.List;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;

import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.config.SiddhiAppContext;
import io.siddhi.core.event.Event;
import io.siddhi.core.query.output.callback.QueryCallback;
import io.siddhi.core.stream.output.StreamCallback;
import io.siddhi.core.util.timestamp.TimestampGeneratorImpl;
import io.siddhi.query.api.definition.Attribute;

public class Play {
    static final int TICKS_PER_MS = 4;

    final JsonArray rows = new JsonArray();
    final JsonArray answers = new JsonArray();
    SiddhiAppRuntime runtime;
    TimestampGeneratorImpl clock;
    long now;

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Gson gson = new GsonBuilder().serializeNulls().serializeSpecialFloatingPointValues().create();
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(gson.toJson(played(gson.fromJson(line, JsonObject.class))));
        }
        System.exit(0);
    }

    static JsonObject played(JsonObject job) {
        SiddhiManager manager = new SiddhiManager();
        JsonObject answer = new JsonObject();
        Play play = new Play();
        try {
            play.run(manager, job);
            answer.add("rows", play.rows);
            answer.add("answers", play.answers);
        } catch (Exception why) {
            answer.addProperty("error", String.valueOf(why));
        } finally {
            manager.shutdown();
        }
        return answer;
    }

    void run(SiddhiManager manager, JsonObject job) throws Exception {
        runtime = manager.createSiddhiAppRuntime("@app:playback " + job.get("app").getAsString());
        Field field = runtime.getClass().getDeclaredField("siddhiAppContext");
        field.setAccessible(true);
        SiddhiAppContext context = (SiddhiAppContext) field.get(runtime);
        clock = (TimestampGeneratorImpl) context.getTimestampGenerator();
        for (JsonElement name : job.getAsJsonArray("queries")) {
            watchQuery(name.getAsString());
        }
        for (JsonElement name : job.getAsJsonArray("streams")) {
            watchStream(name.getAsString());
        }
        now = job.get("start").getAsLong();
        clock.setCurrentTimestamp(now);
        runtime.start();
        for (JsonElement step : job.getAsJsonArray("steps")) {
            step(step.getAsJsonObject());
        }
        runtime.shutdown();
    }

    void watchQuery(String name) {
        runtime.addCallback(name, new QueryCallback() {
            @Override
            public void receive(long timestamp, Event[] in, Event[] removed) {
                note(name, "current", in);
                note(name, "expired", removed);
            }
        });
    }

    void watchStream(String name) {
        runtime.addCallback(name, new StreamCallback() {
            @Override
            public void receive(Event[] events) {
                note(name, "current", events);
            }
        });
    }

    void note(String name, String kind, Event[] events) {
        if (events == null) {
            return;
        }
        for (Event event : events) {
            JsonArray row = new JsonArray();
            row.add(name);
            row.add(kind);
            row.add(clock.currentTime());
            row.add(written(event.getData()));
            rows.add(row);
        }
    }

    void step(JsonObject step) throws Exception {
        if (step.has("ask")) {
            Event[] found = runtime.query(step.get("ask").getAsString());
            if (found == null) {
                answers.add(JsonNull.INSTANCE);
                return;
            }
            JsonArray all = new JsonArray();
            for (Event event : found) {
                all.add(written(event.getData()));
            }
            answers.add(all);
        } else if (step.has("events")) {
            JsonArray given = step.getAsJsonArray("events");
            Event[] events = new Event[given.size()];
            for (int i = 0; i < events.length; i++) {
                JsonArray event = given.get(i).getAsJsonArray();
                long ts = event.get(0).getAsLong();
                events[i] = new Event(ts, read(step, event.get(1).getAsJsonArray()));
            }
            move(events[events.length - 1].getTimestamp());
            runtime.getInputHandler(step.get("stream").getAsString()).send(events);
        } else {
            long ts = step.get("ts").getAsLong();
            move(ts);
            if (step.has("stream")) {
                Object[] data = read(step, step.getAsJsonArray("data"));
                runtime.getInputHandler(step.get("stream").getAsString()).send(ts, data);
            }
        }
    }

    void move(long ts) {
        for (; now < ts; now++) {
            for (int i = 0; i < TICKS_PER_MS; i++) {
                clock.setCurrentTimestamp(now + 1);
            }
        }
    }

    Object[] read(JsonObject step, JsonArray given) {
        String stream = step.get("stream").getAsString();
        List<Attribute> attributes =
                runtime.getStreamDefinitionMap().get(stream).getAttributeList();
        Object[] data = new Object[given.size()];
        for (int i = 0; i < data.length; i++) {
            data[i] = value(given.get(i), attributes.get(i).getType());
        }
        return data;
    }

    static Object value(JsonElement given, Attribute.Type type) {
        if (given.isJsonNull()) {
            return null;
        }
        switch (type) {
            case INT: return given.getAsInt();
            case LONG: return given.getAsLong();
            case FLOAT: return given.getAsFloat();
            case DOUBLE: return given.getAsDouble();
            case BOOL: return given.getAsBoolean();
            default: return given.getAsString();
        }
    }

    static JsonArray written(Object[] data) {
        JsonArray row = new JsonArray();
        for (Object value : data) {
            row.add(written(value));
        }
        return row;
    }

    static JsonElement written(Object value) {
        if (value == null) {
            return JsonNull.INSTANCE;
        } else if (value instanceof Float) {
            return new JsonPrimitive(((Float) value).doubleValue());
        } else if (value instanceof Number) {
            return new JsonPrimitive((Number) value);
        } else if (value instanceof Boolean) {
            return new JsonPrimitive((Boolean) value);
        } else if (value instanceof Iterable) {
            JsonArray all = new JsonArray();
            for (Object one : (Iterable<?>) value) {
                all.add(written(one));
            }
            return all;
        }
        return new JsonPrimitive(value.toString());
    }
}
