package layout

import (
	"database/sql"
	"errors"
)

// CollectRows reads rows to their end; scan reads the present row.
func CollectRows[T any](rows *sql.Rows, scan func() (T, error)) ([]T, error) {
	var out []T
	for rows.Next() {
		v, err := scan()
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// ReadOne reads the only row, or returns missing when there is none.
func ReadOne[T any](rows *sql.Rows, err, missing error, scan func() (T, error)) (T, error) {
	var zero T
	if err != nil {
		return zero, ToContractError(err)
	}
	list, err := CollectRows(rows, scan)
	switch {
	case err != nil:
		return zero, ToContractError(err)
	case len(list) == 0:
		return zero, missing
	}
	return list[0], nil
}
