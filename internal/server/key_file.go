package server

import (
	"errors"
	"os"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/link"
)

// keyFile is a file with keys, "id: base64" in each line, that an option names.
type keyFile struct {
	flag string
	path string
	keys string // which ones they are, for a warning in the log
}

// readKeys reads the keys of a file, and warns when others may read it. The error is an
// *exit.UsageError.
func readKeys[K any](f keyFile, log *zap.Logger, parse func(text string) (K, error)) (keys K, err error) {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return keys, exit.Usagef("--%s: %v", f.flag, err).WithHint("want a file with lines like k1: BASE64 OF 32 BYTES")
	}
	if keys, err = parse(string(text)); err != nil {
		return keys, f.explainKeys(err)
	}
	warnAboutReaders(log, "others may read "+f.keys+": give the file mode 0400", f.path)
	return keys, nil
}

// explainKeys makes an *exit.UsageError of a *seal.KeyError or a *link.KeyError.
func (f keyFile) explainKeys(err error) error {
	if wrong, ok := errors.AsType[*seal.KeyError](err); ok {
		return exit.Usagef("--%s: %s: %s", f.flag, f.path, wrong.Describe()).WithHint("%s", wrong.Want)
	}
	if wrong, ok := errors.AsType[*link.KeyError](err); ok {
		return exit.Usagef("--%s: %s: %s", f.flag, f.path, wrong.Describe()).WithHint("%s", wrong.Want)
	}
	return err
}

// warnAboutReaders logs a warning when others than the owner may read a file.
func warnAboutReaders(log *zap.Logger, warning, path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn(warning, zap.String("file", path), zap.Stringer("mode", info.Mode().Perm()))
	}
}
