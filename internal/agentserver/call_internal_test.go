package agentserver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestABodyThatIsNoObjectIsRefused(t *testing.T) {
	c := &call{body: []byte(`[]`)}
	require.EqualError(t, c.decodeBody(&itemPut{}), "the body is a JSON array: want an object")
}
