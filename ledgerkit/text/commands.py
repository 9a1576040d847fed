"""What the shell commands say."""

from __future__ import annotations

from typing import Final, Literal

STRINGS: Final[dict[str, dict[Literal["zh", "en"], str]]] = {
    "command.figures.summary": {
        "zh": "执行 notebook，打印账本表，输出图片",
        "en": "execute the notebook, print the ledger table, write the figures",
    },
    "command.figures.written": {"zh": "已写入 {path}：", "en": "Written to {path}:"},
    "command.figures.page": {
        "zh": "已写入 {path}（{size}，可离线打开）",
        "en": "Written to {path} ({size}, opens without network)",
    },
    "command.report.summary": {
        "zh": "用三本账把一个模型读一遍",
        "en": "read a model by three ledgers",
    },
    "command.report.written": {"zh": "已写入 {path}", "en": "Written to {path}"},
    "command.warmup.summary": {
        "zh": "预先编译计算内核",
        "en": "compile the kernels ahead of the first use",
    },
    "command.warmup.done": {
        "zh": "内核已就绪（{seconds} 秒）",
        "en": "kernels are ready ({seconds} s)",
    },
    "command.doctor.summary": {
        "zh": "检查安装，并说明怎么修",
        "en": "check this installation and say what to do",
    },
    "command.doctor.all_well": {"zh": "一切正常", "en": "all is well"},
    "command.doctor.failed": {"zh": "未通过：{count} 项", "en": "failed: {count}"},
    "command.doctor.fix": {"zh": "怎么修：{fix}", "en": "do: {fix}"},
    "command.doctor.package": {"zh": "依赖 {name}", "en": "package {name}"},
    "command.doctor.missing": {"zh": "未安装", "en": "not installed"},
    "command.doctor.too_old": {
        "zh": "{version}，需要 {wanted}",
        "en": "{version}, {wanted} is needed",
    },
    "command.doctor.install": {"zh": "pip install {name}", "en": "pip install {name}"},
    "command.doctor.frontend": {"zh": "前端 {name}", "en": "front end of {name}"},
    "command.doctor.frontend_missing": {
        "zh": "JupyterLab 找不到它：控件会显示 “model not found”",
        "en": "JupyterLab does not find it: widgets will say 'model not found'",
    },
    "command.doctor.frontend_other": {
        "zh": "JupyterLab 用 {frontend}，内核用 {kernel}",
        "en": "JupyterLab has {frontend}, the kernel has {kernel}",
    },
    "command.doctor.frontend_fix": {
        "zh": "在启动 JupyterLab 的那个环境里装 {name}=={version}，重启 JupyterLab，再刷新页面",
        "en": "install {name}=={version} where JupyterLab itself runs, restart it, reload the page",
    },
    "command.doctor.renderer": {"zh": "出图（vl-convert）", "en": "renderer (vl-convert)"},
    "command.doctor.renderer_ok": {
        "zh": "离线生成 SVG，耗时 {seconds} 秒",
        "en": "an SVG without network in {seconds} s",
    },
    "command.doctor.display": {"zh": "图在 notebook 里的显示", "en": "charts in notebooks"},
    "command.doctor.display_ok": {
        "zh": "renderer {name}，不需要网络",
        "en": "renderer {name}, needs no network",
    },
    "command.doctor.display_fix": {
        "zh": 'alt.renderers.enable("default")：现在的 renderer 在 JupyterLab 里会空白，或要联网',
        "en": 'alt.renderers.enable("default"): this one stays blank in JupyterLab, or without '
        "network",
    },
    "command.doctor.screen_font": {"zh": "屏幕上的中文字体", "en": "Chinese font on screen"},
    "command.doctor.screen_font_unknown": {
        "zh": "这里查不到；导出的图自带字体",
        "en": "cannot be asked here; exported figures bring their own",
    },
    "command.doctor.screen_font_none": {
        "zh": "没有：本机屏幕上会是方块，导出的 PNG 和 PDF 不受影响",
        "en": "none: squares on this screen; exported PNG and PDF bring their own font",
    },
    "command.doctor.fonts": {"zh": "自带字体", "en": "own fonts"},
    "command.doctor.fonts_fix": {
        "zh": "重装 ledgerkit：缺了字体，中文图会变成方块",
        "en": "reinstall ledgerkit: without its fonts Chinese figures show boxes",
    },
    "command.doctor.cache": {"zh": "内核缓存", "en": "kernel cache"},
    "command.doctor.cache_none": {
        "zh": "没有可写的目录：每个进程都要重新编译",
        "en": "no writable directory: every process compiles again",
    },
    "command.doctor.cache_fix": {
        "zh": "把 NUMBA_CACHE_DIR 设为可写的目录",
        "en": "set NUMBA_CACHE_DIR to a writable directory",
    },
    "command.doctor.threads": {"zh": "线程", "en": "threads"},
    "command.doctor.threads_ok": {
        "zh": "内核是串行的，按块分给 {count} 个 Python 线程；不用 numba 的线程层",
        "en": "kernels are serial, chunks go to {count} Python threads; numba's layer is unused",
    },
}
