package index

import (
	"context"
	"database/sql"
	"sync"
)

// maxPrepared bounds the statements that stay prepared: those of the combinations of conditions that
// come first.
const maxPrepared = 256

// preparedQueries keeps the statements of queries prepared: to read a text takes SQLite longer
// than to find a question of a thread.
type preparedQueries struct {
	db *sql.DB

	mu     sync.Mutex
	byText map[string]*sql.Stmt
}

func newPreparedQueries(db *sql.DB) *preparedQueries {
	return &preparedQueries{db: db, byText: map[string]*sql.Stmt{}}
}

// QueryContext runs a query.
func (p *preparedQueries) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	s, err := p.findStatement(ctx, text)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return p.db.QueryContext(ctx, text, args...)
	}
	return s.QueryContext(ctx, args...)
}

// findStatement returns the prepared statement of a text, nil = there are too many others.
func (p *preparedQueries) findStatement(ctx context.Context, text string) (*sql.Stmt, error) {
	p.mu.Lock()
	s, isFull := p.byText[text], len(p.byText) >= maxPrepared
	p.mu.Unlock()
	if s != nil || isFull {
		return s, nil
	}
	s, err := p.db.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.byText[text]; other != nil {
		return other, s.Close()
	}
	p.byText[text] = s
	return s, nil
}
