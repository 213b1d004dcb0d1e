package permission

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/access"
)

// Rights that services ask for, because they depend on more than the request.
const (
	ApproveChanges = access.ApproveChanges
	BringGraphs    = access.BringGraphs
)

// Right names what some requests need beside the method.
type Right = access.Right

// isDecidedByService reports whether a right depends on what the server has stored. The
// service of the method asks for it, see Authorizer.CheckGraph.
func isDecidedByService(right access.Right, field access.Field) bool {
	return right == ApproveChanges || right == BringGraphs && field.Method == graphdv1.WorkerService_Connect_FullMethodName
}

// fieldRight is a right that a field of a request needs.
type fieldRight struct {
	right access.Right
	path  fieldPath
	fits  func(protoreflect.Value) bool // nil = any value that is not the default
}

// newFieldRight makes the check of a row of access.Rights. The error names a row whose
// condition is not known here.
func newFieldRight(right access.Right, field access.Field, request protoreflect.MessageDescriptor) (fieldRight, error) {
	unknown := fmt.Errorf("permission: %s: nothing checks %s of %s", right, field.Path, field.Method)
	path, err := findPath(request, field.Path)
	switch {
	case err != nil:
		return fieldRight{}, err
	case path == nil:
		return fieldRight{}, unknown
	}
	r := fieldRight{right: right, path: path}
	if field.When == "" {
		return r, nil
	}
	last := path[len(path)-1]
	if last.Enum() != nil {
		value := last.Enum().Values().ByName(protoreflect.Name(field.When))
		if value == nil {
			return r, unknown
		}
		number := value.Number()
		r.fits = func(v protoreflect.Value) bool { return v.Enum() == number }
		return r, nil
	}
	if field.Method == graphdv1.ThreadService_UpdateThread_FullMethodName && field.Path == "update_mask" {
		r.fits = namesExpiration
		return r, nil
	}
	return r, unknown
}

// namesExpiration reports whether a mask of UpdateThread names the end of a thread or of
// its history.
func namesExpiration(v protoreflect.Value) bool {
	mask, ok := v.Message().Interface().(*fieldmaskpb.FieldMask)
	return ok && slices.ContainsFunc(mask.GetPaths(), func(path string) bool {
		return slices.Contains([]string{"*", "ttl", "expire_time", "keep_checkpoints"}, path)
	})
}

// isNeededBy reports whether a request needs the right.
func (r *fieldRight) isNeededBy(m protoreflect.Message) bool { return r.path.isSetTo(m, r.fits) }
