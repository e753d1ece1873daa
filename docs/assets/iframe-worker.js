// A site that is opened from disk may not start workers, and the theme's search is one. Where the address is of a file,
// this lets the search run in a hidden frame instead, which the page talks to like to a worker.
if (location.protocol === "file:") {
  class FrameWorker extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.ready = new Promise((resolve) => {
        const start = () => {
          const inside = frame.contentWindow;
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inside.document.createElement("script");
          script.src = address;
          script.onload = () => resolve(inside);
          script.onerror = () => this.dispatchEvent(new ErrorEvent("error", { message: `cannot read ${address}` }));
          inside.document.head.append(script);
        };
        const attach = () => {
          document.body.append(frame);
          start();
        };
        if (document.body) attach();
        else addEventListener("DOMContentLoaded", attach, { once: true });
      });
    }

    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.ready.then((inside) => inside.frameElement.remove());
    }
  }
  window.IFrameWorker = FrameWorker; // the name by which the theme's search knows that it runs in a frame
  window.Worker = FrameWorker;
}
