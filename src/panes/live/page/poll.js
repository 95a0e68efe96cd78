// Where snapshots come from. The next one is asked for when the last has been drawn: a slow page
// asks less often, and nothing waits for it anywhere.

const PAUSE = 500;
const LONGEST = 3000;
const token = new URLSearchParams(location.search).get("token") ?? "";
const headers = { Authorization: `Bearer ${token}` };

export function poll({ look, isPaused, onSnapshot, onGone }) {
  let wait = PAUSE;
  async function once() {
    if (isPaused() || document.hidden) return schedule(PAUSE);
    try {
      const asked = new URLSearchParams(Object.entries(look()).filter(([, text]) => text));
      const reply = await fetch(`api/snapshot?${asked}`, { headers, cache: "no-store" });
      if (!reply.ok) throw new Error((await reply.json()).said);
      const snapshot = await reply.json();
      if (!isPaused()) onSnapshot(snapshot);
      wait = PAUSE;
    } catch (error) {
      onGone(error instanceof TypeError ? "the program does not answer; looking again" : error.message);
      wait = Math.min(LONGEST, wait * 1.5);
    }
    return schedule(wait);
  }
  const schedule = (ms) => { setTimeout(once, ms); };
  once();
  return once;
}

// Ask the host to add or remove a query; gives what it said.
export async function change(method, query) {
  const body = JSON.stringify(query);
  const reply = await fetch("api/queries", {
    method, body, headers: { ...headers, "Content-Type": "application/json" },
  });
  return { isDone: reply.ok, said: (await reply.json()).said };
}
