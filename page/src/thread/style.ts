// The style of threads and graphs. What imports this is shown when the style is there.

const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: "/assets/thread.css" });
const isLoaded = new Promise((resolve) => (link.onload = link.onerror = resolve));
document.head.append(link);
await isLoaded;

export {};
