// Search without a server: a page opened from the disk may start no worker, so a hidden frame
// takes its place. The name of this file tells the offline plugin that nothing is to be loaded.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) =>
        setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
      const script = inside.document.createElement("script");
      script.src = new URL(url, location);
      this.loaded = new Promise((resolve) => (script.onload = resolve));
      this.inside = inside;
      inside.document.head.append(script);
    }
    postMessage(data) {
      this.loaded.then(() =>
        this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }
    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
