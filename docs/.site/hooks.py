"""The site's first page is README.md, which names the other pages from where it lies."""
import os
import re

from mkdocs.structure.files import File


def on_files(files, config):
    lines, is_program = [], False
    with open(os.path.join(os.path.dirname(config.config_file_path), "README.md")) as file:
        for line in file:
            is_program ^= line.startswith("```")
            if not is_program and not line.startswith("    "):
                line = re.sub(r"`?\bdocs/([\w-]+\.md)`?", r"[\1](\1)", line)
            lines.append(line)
    files.append(File.generated(config, "index.md", content="".join(lines)))
    return files
