package contexts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/identity/file"
)

// ReadList reads the contexts of a file; a file that can't be reached has none: the
// home of a service may be a file, or a folder of another user. The error is an
// *exit.UsageError for a file that can't be used.
func ReadList(path string) (*List, error) {
	if _, err := os.Stat(path); err != nil {
		return &List{path: path}, nil //nolint:nilerr // see above
	}
	text, err := file.Read(path)
	if err != nil {
		return nil, explainError(err)
	}
	return parseList(path, text)
}

func parseList(path string, text []byte) (*List, error) {
	l := &List{path: path}
	if err := file.Decode(path, text, l); err != nil {
		return nil, explainError(err)
	}
	return l, nil
}

func explainError(err error) error {
	if _, ok := errors.AsType[*file.Error](err); ok {
		return exit.Usagef("%v", err).WithHint("correct the file of contexts, or call with --server to put it aside")
	}
	return err
}

// AddContext adds a context to a file, which it makes if there is none, or replaces
// the one of its name. Relative paths become absolute: they belong to the present
// folder. The error is an *exit.UsageError for a context with which no server could
// be called, and for one that exists unless replaces is set. The file then stays as
// it is.
func AddContext(ctx context.Context, path string, c Context, replaces bool) error {
	for _, at := range []*string{&c.TLSCA, &c.TLSCert, &c.TLSKey, &c.TokenFile} {
		if *at == "" {
			continue
		}
		absolute, err := filepath.Abs(*at)
		if err != nil {
			return err
		}
		*at = absolute
	}
	if err := checkContext(c); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return editList(ctx, path, func(l *List) error {
		old := l.findContext(c.Name)
		switch {
		case old == nil && len(l.Contexts) >= MaxContexts:
			return exit.Usagef("%s has %d contexts", path, len(l.Contexts)).WithHint("remove one with graphd context remove NAME")
		case old == nil:
			l.Contexts = append(l.Contexts, c)
		case !replaces:
			return exit.Usagef("the context %s exists", c.Name).WithHint("give --force to replace it, or another name")
		default:
			*old = c
		}
		return nil
	})
}

// checkContext checks all values, and reads the files that they name.
func checkContext(c Context) error {
	if found := c.findProblems(); len(found) > 0 {
		what := fmt.Sprint("--", found[0].Path[0])
		if what == "--name" {
			what = "NAME"
		}
		return exit.Usagef("%s %s", what, found[0].Is).WithHint("want %s", found[0].Want)
	}
	token, err := c.ReadToken()
	if err != nil {
		return err
	}
	security := c.Security()
	security.Token = token
	return client.CheckCall(c.Server, security)
}

// UseContext makes a context the one of commands that name none; "" = none of them.
// The error is an *exit.UsageError when there is no such context.
func UseContext(ctx context.Context, path, name string) error {
	if err := checkExistence(path, name); err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil // name is "", and none is the current one
	}
	return editList(ctx, path, func(l *List) error {
		if name != "" {
			if _, err := l.FindContext("NAME", name); err != nil {
				return err
			}
		}
		l.Current = name
		return nil
	})
}

// RemoveContext removes a context, and reports whether it was the current one: none
// is then. The error is an *exit.UsageError when there is no such context.
func RemoveContext(ctx context.Context, path, name string) (wasCurrent bool, err error) {
	if err := checkExistence(path, name); err != nil {
		return false, err
	}
	err = editList(ctx, path, func(l *List) error {
		if _, err := l.FindContext("NAME", name); err != nil {
			return err
		}
		l.Contexts = slices.DeleteFunc(l.Contexts, func(c Context) bool { return c.Name == name })
		if wasCurrent = l.Current == name; wasCurrent {
			l.Current = ""
		}
		return nil
	})
	return wasCurrent, err
}

// checkExistence finds a name that is missing before a file is made for it.
func checkExistence(path, name string) error {
	l, err := ReadList(path)
	if err == nil && name != "" {
		_, err = l.FindContext("NAME", name)
	}
	return err
}

// editList changes the contexts of a file.
func editList(ctx context.Context, path string, change func(*List) error) error {
	return file.Edit(ctx, path, func(text []byte) ([]byte, error) {
		l, err := parseList(path, text)
		if err != nil {
			return nil, err
		}
		if err := change(l); err != nil {
			return nil, err
		}
		text, err = file.Encode(l)
		if err != nil {
			return nil, err
		}
		return append([]byte("# graphd keeps this file: comments are lost when graphd context changes it.\n"), text...), nil
	})
}
