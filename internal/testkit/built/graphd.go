// Package built builds the program graphd for tests, once for all packages.
package built

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// testVersion is the version of a graphd that tests build.
const testVersion = "v0.0.0-test"

// Graphd returns the path of a graphd of this checkout: $GRAPHD_BIN, which make has
// just built, or a program below bin/ that it builds now.
func Graphd(tb testing.TB) string {
	tb.Helper()
	path, err := buildGraphd()
	if err != nil {
		tb.Fatal(err)
	}
	// go test takes a file that a test opens for an input, so that a cached result
	// ends with it.
	if _, err := os.Stat(path); err != nil {
		tb.Fatal(err)
	}
	return path
}

// Version returns the version of the program: $TEST_VERSION, which make sets with
// $GRAPHD_BIN, or testVersion.
func Version() string {
	if os.Getenv("GRAPHD_BIN") == "" { //nolint:forbidigo // make says what it has built
		return testVersion
	}
	return os.Getenv("TEST_VERSION") //nolint:forbidigo // make says what it has built
}

var buildGraphd = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("GRAPHD_BIN"); path != "" { //nolint:forbidigo // make says what it has built
		return path, nil
	}
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(out)))
	folder := filepath.Join(root, "bin", "test")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	// Packages are tested at the same time, and go build may write to the file
	// while another one starts it.
	lock, err := os.Create(filepath.Join(folder, "graphd.lock"))
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	path := filepath.Join(folder, "graphd")
	// The flags are those of `make build`, so that Go compiles each package once.
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-X main.version="+testVersion, "-o", path, "./cmd/graphd")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building graphd: %w\n%s", err, out)
	}
	return path, nil
})
