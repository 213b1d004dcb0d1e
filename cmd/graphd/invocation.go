package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// currentInvocation returns the command line that calls this program again from the
// present folder. The binary that `go run` makes is removed when it ends, so the
// `go run` command is returned instead.
func currentInvocation() []string {
	path, err := os.Executable()
	if err != nil || !strings.Contains(filepath.ToSlash(path), "/go-build") {
		return []string{os.Args[0]}
	}
	if _, err := os.Stat(filepath.Join("cmd", "graphd", "main.go")); err == nil {
		return []string{"go", "run", "./cmd/graphd"}
	}
	what := "github.com/graphd-dev/graphd/cmd/graphd"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		what = info.Path + "@" + info.Main.Version
	}
	return []string{"go", "run", what}
}
