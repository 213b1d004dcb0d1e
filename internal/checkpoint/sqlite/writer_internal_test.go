package sqlite

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
)

// TestAChangeThatPanicsIsUndoneAlone has changes wait together, one of which
// panics when it has written something.
func TestAChangeThatPanicsIsUndoneAlone(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "graphd.db")})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			name := fmt.Sprintf("t%d", i)
			_, err := s.Apply(t.Context(), &checkpoint.Change{Thread: name, Op: "op", Head: checkpoint.Head{
				Thread: name, LogID: "log", State: checkpoint.ThreadIdle, Created: time.Unix(1, 0), Updated: time.Unix(1, 0),
			}})
			if err != nil {
				t.Errorf("change of %s: %v", name, err)
			}
		})
		all.Go(func() {
			err := s.writer.runChange(t.Context(), func(w *writer) error {
				if _, err := w.conn.ExecContext(w.life, `UPDATE meta SET value = 77 WHERE key = 'last_change'`); err != nil {
					return err
				}
				panic("a defect")
			})
			if _, ok := err.(interface{ Unwrap() []error }); !ok {
				t.Errorf("a change that panics: %v", err)
			}
		})
	}
	all.Wait()
	err = s.writer.runChange(t.Context(), func(*writer) error { panic("a defect") })
	require.ErrorIs(t, err, checkpoint.ErrInvalid)
	var caught *contain.PanicError
	require.ErrorAs(t, err, &caught)
	var change int64
	require.NoError(t, s.readDB.QueryRowContext(t.Context(), `SELECT value FROM meta WHERE key = 'last_change'`).Scan(&change))
	require.Zero(t, change, "what it had written is undone")
	for i := range 20 {
		_, err := s.Head(t.Context(), fmt.Sprintf("t%d", i))
		require.NoError(t, err)
	}
}
