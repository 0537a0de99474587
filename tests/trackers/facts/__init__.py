"""A small extract of what the forges themselves publish about the operations that we use.

`github.json` and `gitea.json` are made by the scripts beside this file from an unpacked npm
package. Tests read the extract only; they need neither npm nor a network.

    npm pack @octokit/openapi && tar xzf octokit-openapi-*.tgz
    python -m tests.trackers.facts.from_octokit package
    npm pack gitea-js && tar xzf gitea-js-*.tgz
    python -m tests.trackers.facts.from_gitea_js package
"""
