// Package otlp sends spans and figures to a collector: OTLP over HTTP, in protobuf.
// It owns where a collector is (the usual variables, and what the settings say
// before them), the encoding of the two messages, and that a busy collector is asked
// again. What is sent, and what becomes of an error, is for others to say.
//
//	to, err := otlp.TargetOf(otlp.Traces, &otlp.Settings{Env: os.LookupEnv})
//	c := otlp.NewClient(to, "usher/1.0")
//	sdktrace.NewTracerProvider(sdktrace.WithBatcher(&otlp.SpanExporter{Client: c}))
//
// The usual exporter does the same, and has gRPC and the whole of protobuf prepare
// themselves before main, also for commands that send nothing.
package otlp
