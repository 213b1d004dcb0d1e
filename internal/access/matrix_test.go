package access_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/access"
)

// protoMethods lists the methods of graphd.v1 and of what gRPC itself serves, by
// their full names.
func protoMethods(t *testing.T) map[string]protoreflect.MethodDescriptor {
	t.Helper()
	require.NotNil(t, graphdv1.File_graphd_v1_run_proto)
	all := map[string]protoreflect.MethodDescriptor{}
	add := func(file protoreflect.FileDescriptor) {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				all[fmt.Sprintf("/%s/%s", service.FullName(), method.Name())] = method
			}
		}
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("graphd.v1", func(file protoreflect.FileDescriptor) bool {
		add(file)
		return true
	})
	add(grpc_health_v1.File_grpc_health_v1_health_proto)
	add(reflectionv1.File_grpc_reflection_v1_reflection_proto)
	add(reflectionv1alpha.File_grpc_reflection_v1alpha_reflection_proto)
	require.Greater(t, len(all), 40)
	return all
}

func TestTableHasEveryMethod(t *testing.T) {
	inProto := protoMethods(t)
	seen := map[string]bool{}
	for _, row := range access.Methods() {
		require.Contains(t, inProto, row.Method, "the table has a method that no proto has")
		require.False(t, seen[row.Method], "%s has two rows", row.Method)
		seen[row.Method] = true
		isForAll := row.Scope.IsForAllCallers() || row.Scope == access.ScopeEndpoint
		require.Equal(t, isForAll, len(row.Roles) == 0, "%s", row.Method)
	}
	for name := range inProto {
		require.True(t, seen[name], "%s has no row in access.Methods", name)
	}
}

// The fields that need a right exist, and the values of enums too.
func TestRightsNameFieldsThatExist(t *testing.T) {
	methods := protoMethods(t)
	for _, right := range access.Rights() {
		for _, f := range right.Fields {
			require.Contains(t, methods, f.Method, "%s", right.Right)
			if f.Path == "" {
				require.NotEmpty(t, f.When, "%s", right.Right)
				continue
			}
			message := methods[f.Method].Input()
			var field protoreflect.FieldDescriptor
			for name := range strings.SplitSeq(f.Path, ".") {
				field = message.Fields().ByName(protoreflect.Name(name))
				require.NotNil(t, field, "%s: %s has no field %s", right.Right, f.Method, f.Path)
				if field.Message() != nil {
					message = field.Message()
				}
			}
			if field.Enum() != nil {
				require.NotNil(t, field.Enum().Values().ByName(protoreflect.Name(f.When)), "%s: %s", right.Right, f.When)
			}
		}
	}
}

// A boolean, enum or text of a request that is dangerous by its name has a right.
func TestDangerousFieldsNeedRights(t *testing.T) {
	guarded := map[string]bool{}
	for _, right := range access.Rights() {
		for _, f := range right.Fields {
			guarded[f.Method+" "+f.Path] = true
		}
	}
	// Operators alone have these methods, so the flag needs nothing more.
	guarded["/graphd.v1.ThreadService/DeleteThread force"] = true
	guarded["/graphd.v1.ThreadService/DeleteThreads force"] = true
	for name, method := range protoMethods(t) {
		if !strings.HasPrefix(name, "/graphd.v1.") || strings.Contains(name, "NodeService") || strings.Contains(name, "WorkerService") {
			continue
		}
		for _, path := range fieldPaths(method.Input(), "", 0) {
			words := path[strings.LastIndex(path, ".")+1:]
			switch words {
			case "supersede_interrupts", "open_interrupts", "as_node", "goto_targets", "force", "override", "replay_from", "input_at":
				if path == "supersteps.updates.goto_targets" { // BulkUpdateState is for operators
					continue
				}
				require.True(t, guarded[name+" "+path], "%s: nothing guards %s", name, path)
			}
		}
	}
}

// fieldPaths lists the fields of a message and of those inside it.
func fieldPaths(message protoreflect.MessageDescriptor, prefix string, depth int) []string {
	if depth > 3 || strings.HasPrefix(string(message.FullName()), "google.") {
		return nil
	}
	var all []string
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		path := prefix + string(field.Name())
		all = append(all, path)
		if field.Message() != nil && !field.IsMap() {
			all = append(all, fieldPaths(field.Message(), path+".", depth+1)...)
		}
	}
	return all
}

// mayCall says what each role may do by the groups of the services, apart from the
// table of the package.
func mayCall(role access.Role, method string) bool {
	parts := strings.Split(method, "/")
	service, name := strings.TrimPrefix(parts[1], "graphd.v1."), parts[2]
	startsWith := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	}
	isOneOf := func(names ...string) bool { return slices.Contains(names, name) }
	if strings.HasPrefix(service, "grpc.") || name == "GetServerInfo" {
		return true
	}
	reads := startsWith("Get", "List", "Count", "Watch", "Wait", "SearchItems") && service != "WorkerService"
	runs := service == "GraphService" && isOneOf("Stream", "StartRun", "CancelRun", "AddRunWebhook") ||
		service == "ThreadService" && isOneOf("CreateThread", "UpdateThread") || service == "ItemService" ||
		service == "CronService"
	switch {
	case service == "NodeService":
		return false
	case role == access.Admin:
		return true
	case role == access.Viewer:
		return reads
	case role == access.Starter:
		return reads || runs
	case role == access.Operator:
		return reads || runs || service == "ThreadService" || service == "AssistantService" || name == "UpdateInterrupt"
	case role == access.Answerer && service == "InterruptService":
		return name != "UpdateInterrupt"
	case role == access.Answerer:
		return startsWith("Resume") || isOneOf("Watch", "WaitRun", "GetRun", "GetThread")
	case role == access.Linker:
		return name == "MakeLink"
	case role == access.Author:
		return service == "RegistryService" || service == "AssistantService"
	case role == access.Worker:
		return service == "WorkerService" || service == "ItemService"
	}
	return false
}

const (
	ownTenant   = "acme"
	otherTenant = "globex"
)

func parse(t testing.TB, text string) *access.Policy {
	t.Helper()
	p, err := access.Parse("policy.yaml", []byte(text))
	require.NoError(t, err)
	return p
}

// Every method with every role, by a binding to the name, by one to a group and by
// the credentials; in the own tenant, in another one and in one of two.
func TestRolesPermitWhatTheTableSays(t *testing.T) {
	for _, row := range access.Roles() {
		role := row.Role
		byName := parse(t, fmt.Sprintf("bindings: [{roles: [%s], principals: [ana]}]", role))
		byGroup := parse(t, fmt.Sprintf("bindings: [{roles: [%s], groups: [team]}]", role))
		everywhere := parse(t, fmt.Sprintf("bindings: [{roles: [%s], groups: [team], tenants: [%s, %s]}]", role, ownTenant, otherTenant))
		one := access.Caller{Name: "ana", Groups: []string{"staff", "team"}, Tenant: ownTenant}
		both := access.Caller{Name: "ana", Groups: []string{"team"}, Tenant: ownTenant, Tenants: []string{ownTenant, otherTenant}}
		withRole, stranger := one, access.Caller{Name: "ben", Groups: []string{"staff"}, Tenant: ownTenant}
		withRole.Roles = []string{string(role)}
		for method := range protoMethods(t) {
			open := mayCall("nobody", method)
			want := mayCall(role, method)
			for name, c := range map[string]struct {
				policy *access.Policy
				caller access.Caller
				tenant string
				want   bool
			}{
				"own tenant, by name":             {byName, one, ownTenant, want},
				"own tenant, not chosen":          {byName, one, "", want},
				"own tenant, by group":            {byGroup, one, ownTenant, want},
				"own tenant, by credentials":      {access.NewPolicy(), withRole, ownTenant, want},
				"a tenant that it has not":        {byName, one, otherTenant, false},
				"the same, by credentials":        {access.NewPolicy(), withRole, otherTenant, false},
				"the same, which a binding has":   {everywhere, one, otherTenant, false},
				"second tenant, bound there":      {everywhere, both, otherTenant, want},
				"second tenant, bound in the 1st": {byName, both, otherTenant, open},
				"somebody else":                   {byName, stranger, ownTenant, open},
				"nobody":                          {byName, access.Caller{Tenant: ownTenant, Groups: []string{"team"}}, ownTenant, false},
			} {
				d := c.policy.Decide(access.Request{
					Caller: c.caller, Method: method, Tenant: c.tenant, Graph: "payout", Thread: "t1",
				})
				require.Equal(t, c.want, d.Allowed, "%s: %s: %s (%s)", role, method, name, d.Rule)
				require.NotEmpty(t, d.Rule)
				if d.Allowed {
					require.True(t, d.CanSee)
				}
			}
		}
	}
}

func TestRolesHaveTheirRights(t *testing.T) {
	operators := []access.Role{access.Operator, access.Admin}
	want := map[access.Right][]access.Role{
		access.DiscardQuestions: operators, access.OverrideQuestion: operators, access.WriteAsNode: operators,
		access.SteerRun: operators, access.ExpireThread: operators, access.DeleteInUse: operators,
		access.ReplaceSettings: {access.Starter, access.Operator, access.Admin},
		access.AddWebhook:      {access.Starter, access.Operator, access.Admin},
		access.CancelRun:       {access.Starter, access.Operator, access.Admin},
		access.BringGraphs:     {access.Author, access.Admin},
		access.ApproveChanges:  nil,
		access.LinkOthers:      {access.Linker, access.Admin},
	}
	require.Len(t, access.Rights(), len(want))
	for _, row := range access.Roles() {
		// Every caller has the method, so that only the right is missing.
		for right, roles := range want {
			caller := access.Caller{Name: "ana", Tenant: ownTenant, Roles: []string{string(row.Role)}}
			d := access.NewPolicy().Decide(access.Request{
				Caller: caller, Method: "/graphd.v1.RegistryService/GetServerInfo", Rights: []access.Right{right},
			})
			require.Equal(t, slices.Contains(roles, row.Role), d.Allowed, "%s %s", row.Role, right)
			if !d.Allowed {
				require.Equal(t, "right: "+string(right), d.Rule)
			}
		}
	}
}
