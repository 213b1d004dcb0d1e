package web

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// Services returns the services of graphd that clients call.
func Services() (all []protoreflect.ServiceDescriptor) {
	for _, file := range []protoreflect.FileDescriptor{
		graphdv1.File_graphd_v1_graph_service_proto, graphdv1.File_graphd_v1_thread_service_proto,
		graphdv1.File_graphd_v1_interrupt_service_proto, graphdv1.File_graphd_v1_registry_service_proto, graphdv1.File_graphd_v1_assistant_service_proto,
		graphdv1.File_graphd_v1_item_service_proto, graphdv1.File_graphd_v1_cron_service_proto, graphdv1.File_graphd_v1_worker_service_proto,
	} {
		for i := range file.Services().Len() {
			all = append(all, file.Services().Get(i))
		}
	}
	return all
}
