package checkpoint

import "context"

// Secrets is a store that keeps secrets which all its servers share.
type Secrets interface {
	// Secret returns the secret of a name. The first secret that is offered for
	// the name stays.
	Secret(ctx context.Context, name, offer string) (string, error)
}
