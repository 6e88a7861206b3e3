// A JupyterLab extension without a build step: one plain file, which Lab loads as it loads a built one.
// When a notebook of the course comes to the front, its lab is in the editor at the right, in a tab that
// says which lab it is. A lab that changes on disk (a reset, another editor) is read again by itself. Printed
// sentences break between words. A figure has its words for those who do not see it.
(() => {
  const TOPIC = /^(.*?)(notebooks|solutions)\/(\d\d_[a-z0-9_]+)\.ipynb$/;
  const LAB = /(^|\/)(labs|solutions)\/(\d\d_[a-z0-9_]+)\/([^/]+\.py)$/;
  const LOOK_MS = 2000; // how often a lab's file is looked at
  const SETTLED_MS = 200; // until Lab has drawn what it has opened

  const pathOf = widget => (widget && widget.context ? widget.context.path : "");
  const mainWidgets = app => Array.from(app.shell.widgets("main"));

  // All labs are called runme.py: the tab says which one it is, as in "05_horovod: runme.py". That is done by style,
  // since Lab takes a new label of a tab for a new name of its file.
  function nameTab(widget) {
    const lab = LAB.exec(pathOf(widget));
    if (!lab || widget.title.className.includes("scaleout-lab")) {
      return;
    }
    const name = `scaleout-lab-${lab[3]}`;
    widget.title.className = `${widget.title.className} ${name}`.trim();
    if (!document.getElementById(name)) {
      const style = document.createElement("style");
      style.id = name;
      style.textContent = `.${name} .lm-TabBar-tabLabel::before { content: "${lab[3]}: "; }`;
      document.head.append(style);
    }
  }

  function breakBetweenWords() {
    const style = document.createElement("style");
    style.textContent = ".jp-OutputArea .jp-OutputArea-output pre { word-break: normal; overflow-wrap: anywhere; }";
    document.head.append(style);
  }

  // Lab draws an output's picture without an alternative text. Ours stands in the output's metadata, and as its
  // plain text in those that were stored before that.
  function describePictures(app) {
    const notebooks = app.docRegistry.getWidgetFactory("Notebook");
    const registry = notebooks && notebooks.rendermime;
    const plain = registry && registry.getFactory("image/png");
    if (!plain) {
      return;
    }
    const createRenderer = options => {
      const renderer = plain.createRenderer(options);
      const draw = renderer.renderModel.bind(renderer);
      renderer.renderModel = async (model, ...more) => {
        await draw(model, ...more);
        const picture = renderer.node.querySelector("img");
        const about = model.metadata["image/png"] || {};
        const words = String(about.alt || model.data["text/plain"] || "");
        if (picture && words && !words.startsWith("<")) {
          picture.alt = words;
        }
      };
      return renderer;
    };
    registry.addFactory({ ...plain, mimeTypes: ["image/png"], createRenderer }, registry.getRank("image/png"));
  }

  function isNotebook(widget) {
    return pathOf(widget).endsWith(".ipynb");
  }

  async function openLab(app, notebook) {
    const topic = TOPIC.exec(pathOf(notebook));
    if (!topic) {
      return;
    }
    const room = topic[2] === "notebooks" ? "labs" : "solutions";
    const path = `${topic[1]}${room}/${topic[3]}/runme.py`;
    const open = mainWidgets(app).find(widget => pathOf(widget) === path);
    if (open) {
      // In front of the other labs, while the notebook keeps the keyboard.
      if (!open.isVisible) {
        app.shell.activateById(open.id);
        app.shell.activateById(notebook.id);
      }
      return;
    }
    try {
      await app.serviceManager.contents.get(path, { content: false });
    } catch (missing) {
      return;
    }
    const editor = mainWidgets(app).find(widget => LAB.test(pathOf(widget)));
    const options = editor
      ? { mode: "tab-after", ref: editor.id, activate: true }
      : { mode: "split-right", ref: notebook.id, activate: true };
    const opened = await app.commands.execute("docmanager:open", { path, factory: "Editor", options });
    nameTab(opened);
    app.shell.activateById(notebook.id);
  }

  // A notebook that was opened from the list of files may land on top of the labs: back to the other notebooks.
  async function moveToItsPane(app, notebook) {
    await new Promise(shown => setTimeout(shown, SETTLED_MS));
    const labs = mainWidgets(app).filter(widget => LAB.test(pathOf(widget)));
    if (labs.length === 0 || labs.some(lab => lab.isVisible)) {
      return;
    }
    const beside = mainWidgets(app).find(
      widget => isNotebook(widget) && widget !== notebook && widget.isVisible
    );
    const options = beside
      ? { mode: "tab-after", ref: beside.id }
      : { mode: "split-left", ref: labs[0].id };
    app.shell.add(notebook, "main", options);
    app.shell.activateById(notebook.id);
  }

  async function readAgain(app) {
    for (const widget of mainWidgets(app)) {
      const context = widget.context;
      if (!LAB.test(pathOf(widget)) || !context.isReady || context.model.dirty || !context.contentsModel) {
        continue;
      }
      nameTab(widget);
      try {
        const now = await app.serviceManager.contents.get(context.path, { content: false });
        if (now.last_modified !== context.contentsModel.last_modified && !context.model.dirty) {
          await context.revert();
        }
      } catch (gone) {
        // The file is away for a moment, as while it is reset: look again next time.
      }
    }
  }

  const plugin = {
    id: "scaleout-workspace:plugin",
    autoStart: true,
    activate: app => {
      let busy = Promise.resolve();
      breakBetweenWords();
      app.started.then(() => describePictures(app)); // before a notebook is drawn
      const arrange = widget => {
        if (isNotebook(widget) && TOPIC.test(pathOf(widget))) {
          busy = busy
            .then(() => moveToItsPane(app, widget))
            .then(() => openLab(app, widget))
            .catch(error => console.warn("scaleout-workspace:", error));
        } else {
          nameTab(widget);
        }
      };
      app.restored.then(() => {
        // Notebook and lab share the width: 79 columns fit beside each other on a screen of 1600 pixels.
        app.shell.collapseLeft();
        mainWidgets(app).forEach(nameTab);
        app.shell.currentChanged.connect((_, change) => arrange(change.newValue));
        arrange(app.shell.currentWidget);
        setInterval(() => {
          busy = busy.then(() => readAgain(app));
        }, LOOK_MS);
      });
    },
  };

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB["scaleout-workspace"] = {
    init: () => undefined,
    get: () => Promise.resolve(() => ({ __esModule: true, default: plugin })),
  };
})();
