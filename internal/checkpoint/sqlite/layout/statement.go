package layout

import "database/sql"

// Preparer keeps the first error, so that its caller checks once.
type Preparer struct {
	prepare func(query string) (*sql.Stmt, error)
	err     error
}

// NewPreparer makes a preparer of statements of a connection, or of any
// connection.
func NewPreparer(prepare func(query string) (*sql.Stmt, error)) *Preparer {
	return &Preparer{prepare: prepare}
}

// PrepareStatement prepares a statement; after an error it does nothing.
func (p *Preparer) PrepareStatement(query string) *sql.Stmt {
	if p.err != nil {
		return nil
	}
	s, err := p.prepare(query)
	if err != nil {
		p.err = ToContractError(err)
		return nil
	}
	return s
}

// Err returns the first error, in the words of the contract.
func (p *Preparer) Err() error { return p.err }
