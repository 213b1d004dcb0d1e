#!/usr/bin/env bash
# Installs the peers, pinned, into the folder that is given. What can't be installed leaves a file "absent"
# there that says why; nothing fails. What is installed already stays.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
into=$1
python=${PYTHON:-python3}

# install NAME SOURCE FUNCTION: again when anything in the source has changed.
install() {
  local folder="$into/$1" state
  state=$(cat "$here/$2"/* "$here/$2"/*/* "$here/install.sh" 2>/dev/null | sha256sum)
  [ "$(cat "$folder/installed" 2>/dev/null)" = "$state" ] && return
  echo "bench: installing $1" >&2
  rm -rf "$folder" && mkdir -p "$folder" && cp -r "$here/$2"/. "$folder"
  if (cd "$folder" && "$3") >"$folder/log" 2>&1; then
    echo "$state" >"$folder/installed"
  else
    grep -v '^ *$' "$folder/log" | tail -1 >"$folder/absent"
  fi
}

langgraph() {
  command -v "$python" || { echo "$python is not installed"; return 1; }
  "$python" -m venv venv && venv/bin/pip install -q --disable-pip-version-check -r requirements.txt
}

langgraph_js() {
  command -v npm || { echo "npm is not installed"; return 1; }
  npm install --no-audit --no-fund --loglevel=error
}

libraries() { go build -o bin/ ./langgraphgo ./eino; }

install langgraph-python langgraph-python langgraph
install langgraph-js langgraph-js langgraph_js
install libraries libraries libraries
