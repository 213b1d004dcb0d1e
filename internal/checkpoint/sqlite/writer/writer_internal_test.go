package writer

import (
	"context"
	"database/sql"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/file"
)

// openWriter makes the writer of a database with a table of names.
func openWriter(t *testing.T, f File) *Writer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := file.ConnectWriter(path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), `CREATE TABLE names (name TEXT PRIMARY KEY)`)
	require.NoError(t, err)
	w, err := New(context.WithoutCancel(t.Context()), db, Options{
		File: f, Path: path, Reserve: file.NewReserve(path, 0), TurnTimeout: time.Minute, CommitTimeout: time.Minute,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

// checkedFile is a file that is found under its name, save for one look.
type checkedFile struct {
	mu   sync.Mutex
	next error // what the next look finds
}

func (f *checkedFile) CheckReplaced() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.next
	f.next = nil
	return err
}

func (f *checkedFile) failOnce(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = err
}

func addName(ctx context.Context, conn *sql.Conn, name string) error {
	_, err := conn.ExecContext(ctx, `INSERT INTO names (name) VALUES (?)`, name)
	return err
}

func refuseChange(context.Context, *sql.Conn) error { return checkpoint.ErrConflict }

// hasName looks what is durable, with a connection of its own.
func hasName(t *testing.T, w *Writer, name string) bool {
	t.Helper()
	db, err := file.ConnectDatabase(w.path, "query_only(1)")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	var n int
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT count(*) FROM names WHERE name = ?`, name).Scan(&n))
	return n > 0
}

// holdWriter keeps the writer busy until the function it returns is called.
func holdWriter(t *testing.T, w *Writer) (release func()) {
	t.Helper()
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		assert.NoError(t, w.RunChange(t.Context(), func(context.Context, *sql.Conn) error {
			close(begun)
			<-end
			return nil
		}))
	}()
	<-begun
	return func() {
		close(end)
		<-ended
	}
}

// enqueueJob returns when the job waits; its error is there when wg is done.
func enqueueJob(w *Writer, wg *sync.WaitGroup, j *Job, err *error) {
	before := w.queue.countJobs()
	wg.Go(func() { *err = w.RunJob(w.life, j) })
	for w.queue.countJobs() == before {
		runtime.Gosched()
	}
}

// A caller of an untimed job waits for its turn and its end as long as they take.
func TestAnUntimedJobIsNotGivenUp(t *testing.T) {
	w := openWriter(t, &checkedFile{})
	w.limits = limits{turn: time.Nanosecond, end: time.Nanosecond}
	begun, end := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	var first, second error
	wg.Go(func() {
		first = w.RunJob(w.life, &Job{IsUntimed: true, Run: func(context.Context, *sql.Conn) error {
			close(begun)
			<-end
			return nil
		}})
	})
	<-begun
	enqueueJob(w, &wg, &Job{IsUntimed: true, Run: func(ctx context.Context, conn *sql.Conn) error { return addName(ctx, conn, "n") }}, &second)
	require.ErrorIs(t, w.RunChange(w.life, refuseChange), checkpoint.ErrStoreBusy)
	close(end)
	wg.Wait()
	require.NoError(t, first)
	require.NoError(t, second)
	require.True(t, hasName(t, w, "n"))
}
