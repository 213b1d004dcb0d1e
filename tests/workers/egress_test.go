package workers_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/graphd-dev/graphd/internal/egress"
	"github.com/graphd-dev/graphd/internal/transport/endpoint"
)

// The name of an endpoint is allowed, and leads to an address that gives
// credentials to each process that connects: the task fails before a connection is opened.
func TestANameThatLeadsToAMetadataServiceIsRefused(t *testing.T) {
	for name, address := range map[string]string{
		"link-local": "169.254.169.254:80", "mapped": "[::ffff:169.254.169.254]:80", "translated": "[64:ff9b::a9fe:a9fe]:80",
		"unique local": "[fd00:ec2::254]:80",
	} {
		t.Run(name, func(t *testing.T) {
			names := manual.NewBuilderWithScheme("dns")
			names.InitialState(resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: address}}}}})
			policy, err := egress.NewPolicy([]string{egress.AnyHost})
			require.NoError(t, err)
			s := startServer(t, config{remote: endpoint.Options{
				Policy: policy, DialOptions: []grpc.DialOption{grpc.WithResolvers(names)},
			}})
			s.putGraph(withEndpoint(newChainGraph("g", "a"), "pricing.example:80", nil))
			failure := s.runGraph("g", `{}`).GetFailure()
			require.Equal(t, "ENDPOINT_NOT_ALLOWED", failure.GetReason(), failure.GetMessage())
			require.Contains(t, failure.GetMessage(), `endpoint "pricing.example:80" leads to "`)
			require.Contains(t, failure.GetMessage(), "--endpoint-allow ")
		})
	}
}
