// Events a second of processor time of siddhi-core for one app, on one thread, second (warm) run.
// Usage: java -cp ... Peer APP EVENTS [EVENTS_PER_MS] ; prints the rate and the rows.
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;

public class Peer {
    static long rows = 0;

    static double run(String app, int events, int perMs) throws Exception {
        SiddhiManager manager = new SiddhiManager();
        SiddhiAppRuntime runtime = manager.createSiddhiAppRuntime("@app:playback " + app);
        runtime.addCallback("O", new StreamCallback() {
            @Override
            public void receive(Event[] received) {
                rows += received.length;
            }
        });
        runtime.start();
        InputHandler input = runtime.getInputHandler("S");
        Object[][] data = new Object[events][];
        long x = 7;
        for (int i = 0; i < events; i++) {
            x = (x * 1103515245L + 12345L) & 0x7fffffffL;
            data[i] = new Object[] {"k" + (x / 7 % 1000), (int) (x / 65536 % 100), (long) i};
        }
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long start = threads.getCurrentThreadCpuTime();
        for (int i = 0; i < events; i++) {
            input.send(i / perMs + 1, data[i]);
        }
        double seconds = (threads.getCurrentThreadCpuTime() - start) / 1e9;
        runtime.shutdown();
        manager.shutdown();
        return events / seconds;
    }

    public static void main(String[] args) throws Exception {
        int events = Integer.parseInt(args[1]);
        int perMs = args.length > 2 ? Integer.parseInt(args[2]) : 1;
        run(args[0], events, perMs);
        rows = 0;
        double rate = run(args[0], events, perMs);
        System.out.println("rate " + rate + " rows " + rows);
        System.exit(0);
    }
}
