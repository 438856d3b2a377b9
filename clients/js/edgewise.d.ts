export declare const VERSION: number;
export declare const Kind: Readonly<{ RECORD: 0; TABLE: 1; SERIES: 2; BLOB: 3 }>;
export declare const How: Readonly<{ SNAPSHOT: 0; UPDATE: 1; CATCH_UP: 2; REPLAY: 3; GAP: 4 }>;

/** How a value came to be; "gap" says that single updates before it are lost. */
export type HowName = "snapshot" | "update" | "catch-up" | "replay" | "gap";
export type GoneReason = "removed" | "expired" | "unsubscribed" | "forbidden";
export type Transport = "websocket" | "sse" | "poll";
export type State = "connecting" | "open" | "waiting" | "closed";

/** Where an update stands: offsets `start` up to and without `to`, `count` updates in one. */
export interface Meta {
  how: HowName;
  epoch: number;
  start: number;
  to: number;
  count: number;
  /** Capture time of the newest update it stands for, microseconds since 1970. */
  at_us: number;
  stale: boolean;
  stale_since_us: number;
}

export interface SubscribeOptions {
  /** At most so many updates per second and topic; more are conflated. */
  rate?: number;
  /** Share of this selection under a budget; 1 is normal. */
  weight?: number;
  /** Aggregates since the last update instead of values, such as ["mean", "min", "max"]. */
  window?: string[];
  /** For series topics: start with at most so many entries. */
  last?: number;
  removed?(topic: string, reason: GoneReason): void;
  stale?(topic: string, stale: boolean, since_us: number): void;
  paused?(topic: string, code: number): void;
  error?(code: number, reason: string): void;
  ready?(topics: number): void;
}

export interface ConnectOptions {
  /** A JWT, or a function that answers one (called again on every reconnect). */
  token?: string | (() => string | Promise<string>);
  /** A name for the server's statistics. */
  client?: string;
  bytes_per_s?: number;
  updates_per_s?: number;
  /** Which to try, in order; all three when left out. */
  transports?: Transport[];
  /** How long to wait for a welcome before the next transport is tried. */
  welcome_ms?: number;
  WebSocket?: typeof WebSocket;
}

export interface Fault extends Error {
  code: number;
  reason: string;
}

export interface Edgewise {
  readonly state: State;
  readonly transport: Transport;
  readonly session?: string;
  readonly clockOffset_us: number;
  age_ms(meta: Meta): number;
  value<T = unknown>(path: string): T | undefined;
  subscribe<T = any>(
    selector: string,
    onUpdate: (topic: string, value: T, meta: Meta) => void,
    on?: SubscribeOptions,
  ): () => void;
  publish(path: string, value: unknown, options?: { kind?: number; remove?: boolean; key?: string }): Promise<void>;
  request<T = unknown>(path: string, body?: unknown): Promise<T>;
  onRequest(path: string, handler: (body: any) => unknown): void;
  setBudget(budget?: { bytes_per_s?: number; updates_per_s?: number }): void;
  on(event: "state", listener: (state: State, detail: { code?: number; reason?: string; session?: string }) => void): () => void;
  on(event: "error", listener: (error: { code: number; reason: string; selector: string }) => void): () => void;
  close(): void;
}

/** Connect and stay connected. */
export declare function connect(url: string | string[], options?: ConnectOptions): Edgewise;
/** The WebSocket address of the edge that served this page. */
export declare function here(path?: string): string;
/** Whether a session closed with `code` is worth another try. */
export declare function retry(code: number): boolean;
export declare function selects(selector: string, path: string): boolean;
export declare function encode(value: unknown): Uint8Array;
export declare function decode(bytes: Uint8Array): any;
export declare function applyDelta(kind: number, old: any, delta: any[], keep?: number): any;
export declare class View {
  updates: number;
  begin(): void;
  positions(selector: string, bytesMax?: number): [string, number, number][];
  take(frame: any[]): any;
}
