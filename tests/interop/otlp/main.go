// A minimal OTLP collector: prints its address, and then each span that it receives over gRPC, until its standard input
// ends.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

type receiver struct {
	collector.UnimplementedTraceServiceServer
}

func (receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	for _, resource := range request.ResourceSpans {
		service := ""
		for _, attribute := range resource.Resource.Attributes {
			if attribute.Key == "service.name" {
				service = attribute.Value.GetStringValue()
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				fmt.Printf("%s %s trace=%x parent=%x\n", service, span.Name, span.TraceId, span.ParentSpanId)
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, receiver{})
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		server.GracefulStop()
	}()
	if err := server.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
