package writer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/file"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
)

// space describes the space for changes. SQLite needs space even to delete, so a
// reserve file holds some back; it is given up for changes that free space, and
// made again afterwards.
type space struct {
	reserve   *file.Reserve
	logBytes  int       // since the log was last kept short
	checkedAt time.Time // when it was last looked whether there is space again
	largest   int64     // file that SQLite was told it may make, 0 = not told
}

// spaceRetryInterval is how long a full store waits before it checks for space again.
const spaceRetryInterval = time.Second

// lacksSpace reports whether SQLite failed for lack of space. Some calls only say
// that they failed: then the limits are looked at, and the disk is asked.
func (w *Writer) lacksSpace(err error) bool {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return false
	}
	return lacksPages(err) || se.Code()&0xff == sqlite3.SQLITE_IOERR && (file.LogSpace(w.path) < file.MinSpace || w.space.reserve.IsDiskFull())
}

// limitPages makes SQLite refuse a change that would make the database larger than
// a file may be. Otherwise moving the log into the database would fail.
func (w *Writer) limitPages() error {
	limit := file.SizeLimit()
	if limit == w.space.largest || limit == math.MaxInt64 && w.space.largest == 0 {
		return nil
	}
	var size, pages int64
	if err := w.conn.QueryRowContext(w.life, "PRAGMA page_size").Scan(&size); err != nil {
		return layout.ToContractError(err)
	}
	most := min(limit/size, mostPages)
	if err := w.conn.QueryRowContext(w.life, fmt.Sprint("PRAGMA max_page_count = ", most)).Scan(&pages); err != nil {
		return layout.ToContractError(err)
	}
	w.space.largest = limit
	return nil
}

// mostPages is the limit of SQLite itself.
const mostPages = 1<<32 - 2

// lacksPages reports whether SQLite had no space for its writes: then it has not
// committed.
func lacksPages(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_FULL
}

// noSpaceError returns the error of changes that are refused while there is no
// space.
func (w *Writer) noSpaceError(cause error) error {
	full := fmt.Sprintf("the disk of %s is full: make room on it, or delete threads", w.path)
	if limit := file.SizeLimit(); limit < math.MaxInt64 {
		full = fmt.Sprintf("%s is full: raise `ulimit -f`, by which no file may have more than %d bytes, "+
			"make room on the disk, or delete threads", w.path, limit)
	}
	return fmt.Errorf("%w: %s; %d bytes must be free: %w", checkpoint.ErrStoreFull, full, w.requiredSpace(), cause)
}

var errNoSpace = errors.New("changes wait until there is room again")

// requiredSpace is how much space there must be, beside the reserve, for the log
// and as much again for the database: less is called full.
func (w *Writer) requiredSpace() int64 { return max(w.space.reserve.MaxSize()/4, 256<<10) }

// refuseWhileFull answers the jobs that need space while there is none, and returns
// the others.
func (w *Writer) refuseWhileFull(batch []*Job) []*Job {
	if !w.isFull.Load() || w.checkSpace() {
		return batch
	}
	var left []*Job
	for _, j := range batch {
		if j.FreesSpace {
			left = append(left, j)
			continue
		}
		j.done <- w.noSpaceError(errNoSpace)
	}
	return left
}

// checkSpace finds out, now and then, whether there is space again.
func (w *Writer) checkSpace() bool {
	if !w.isFull.Load() {
		return true
	}
	if now := time.Now(); now.Sub(w.space.checkedAt) >= spaceRetryInterval {
		w.space.checkedAt = now
		w.restoreReserve()
	}
	return !w.isFull.Load()
}

// restoreReserve makes the reserve whole, and takes the store for full no more when
// there is space beside it.
func (w *Writer) restoreReserve() {
	if w.space.reserve.EnsureFile() != nil || w.limitPages() != nil {
		return
	}
	if available, err := w.availableSpace(); err == nil && available >= w.requiredSpace() {
		w.isFull.Store(false)
	}
}

// availableSpace returns how much changes may add to the log and to the database. The log needs the
// disk; the database has free pages, and the disk that the log does not need.
func (w *Writer) availableSpace() (int64, error) {
	var size, pages, most, free int64
	for pragma, into := range map[string]*int64{
		"page_size": &size, "page_count": &pages, "max_page_count": &most, "freelist_count": &free,
	} {
		if err := w.conn.QueryRowContext(w.life, "PRAGMA "+pragma).Scan(into); err != nil {
			return 0, layout.ToContractError(err)
		}
	}
	disk := file.LogSpace(w.path)
	grow := min(most-pages, max(0, disk-w.requiredSpace())/size)
	return min(disk, (free+grow)*size), nil
}

// retryWithReserve answers a job that failed for lack of space. The log may hold
// space that it does not need; without more, only a job that frees space has
// another try, with the space of the reserve.
func (w *Writer) retryWithReserve(j *Job, cause error) {
	w.space.reserve.RemoveFile() // to move the log into the database takes space, too
	w.TruncateLog()
	if j.FreesSpace || w.space.reserve.EnsureFile() == nil {
		results, err := w.runTransaction([]*Job{j})
		if err == nil {
			w.TruncateLog()
			w.checkSpace()
			j.done <- results[0]
			return
		}
		cause = err
	}
	if w.lacksSpace(cause) {
		w.isFull.Store(true)
		cause = w.noSpaceError(cause)
		w.TruncateLog() // of the second try
	}
	w.restoreReserve()
	j.done <- cause
}

const (
	// scarceSpace is the space below which the writer truncates its log after
	// each truncateLogEvery bytes: the changes in the log have no space in the
	// database yet.
	scarceSpace      = 64 << 20
	truncateLogEvery = 256 << 10
)

// limitLog keeps the log short when the disk is nearly full.
func (w *Writer) limitLog(batch []*Job) {
	for _, j := range batch {
		w.space.logBytes += j.Cost
	}
	if w.space.logBytes < truncateLogEvery {
		return
	}
	w.space.logBytes = 0
	if file.LogSpace(w.path) >= scarceSpace {
		return
	}
	w.TruncateLog()
	if available, err := w.availableSpace(); err == nil && available < w.requiredSpace() {
		w.isFull.Store(true)
	}
}

// TruncateLog moves the log into the database and cuts it off, which gives its
// space back. It may not be possible now: then it will be another time.
func (w *Writer) TruncateLog() {
	_ = file.MoveLog(w.life, w.path, w.conn)
}

// CheckWritable says whether changes are taken. A writer that was full checks for space.
func (w *Writer) CheckWritable(ctx context.Context) error {
	if err := w.file.CheckReplaced(); err != nil {
		return err
	}
	if !w.isFull.Load() {
		return nil
	}
	return w.RunChange(ctx, func(context.Context, *sql.Conn) error { return nil })
}

// HoldReserve holds space back. When there is none, changes that need space are refused if the disk
// was nearly full before: the rest is for changes that free space.
func (w *Writer) HoldReserve(wasNearlyFull bool) error {
	err := w.space.reserve.EnsureFile()
	if err != nil {
		w.isFull.Store(wasNearlyFull)
	}
	return err
}
