package registry

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/graph"
)

// WatchDir loads a folder, and returns a function that checks it at this interval
// and loads it again when a file in it has changed, until ctx ends. It passes the
// results of LoadDir to report, which is not called while nothing changes. No
// change between the call of WatchDir and that of the function is missed.
func (r *Registry) WatchDir(
	ctx context.Context, dir string, every time.Duration, report func([]*graph.Graph, error),
) (look func()) {
	seen := dirFingerprint(dir)
	report(r.LoadDir(ctx, dir))
	return func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if ctx.Err() != nil { // select takes any of two ready cases
				return
			}
			now := dirFingerprint(dir)
			if now == seen {
				continue
			}
			seen = now
			report(r.LoadDir(ctx, dir))
		}
	}
}

// dirFingerprint returns a value that changes when a graph file of a folder, or of
// the folders right below it, changes.
func dirFingerprint(dir string) string {
	var b strings.Builder
	for _, pattern := range []string{"*", "*/*"} {
		// Not filepath.Glob: the folder's own name may hold brackets.
		names, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil {
			return err.Error()
		}
		for _, name := range names {
			switch strings.ToLower(filepath.Ext(name)) {
			case ".yaml", ".yml", ".json":
			default:
				continue
			}
			info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
			if err != nil || info.IsDir() {
				continue
			}
			fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}
