// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package traces exports the runs of controllers as OpenTelemetry spans, over OTLP: one span for each run, with links to
// the runs whose writes caused it.
//
//	config, err := traces.FromEnvironment(os.Getenv, "my-operator")
//	...
//	if config != nil { // a receiver is named
//		exporter, err := traces.New(*config)
//		...
//		m, err := manager.New(restConfig, manager.Traces(exporter))
//	}
//
// # Where spans come from
//
// An [Exporter] observes a [runs.Record]. It makes a span when a run has ended, so the loop of the controller does
// nothing for traces while the run lasts, and nothing at all without an exporter.
//
// The IDs of a span are computed from a random number of the exporter and the number of the run. So the exporter can
// link to a run without a table of spans: the record finds the number of the run that wrote a version of an object. It
// looks when the batch is sent, because the run that caused another one may end after it.
//
// # The context on objects
//
// With [Config].Annotations, the objects that a run creates carry its trace context in an annotation, and a span links to
// the contexts of the objects that its run is about. A run then gets its number when it creates the first object, so that
// the ID of its span is known before the run has ended.
//
// # What a span never has
//
// Spans have what the record has: names, versions, times, codes and the text of errors. They have no values of fields.
//
// # A receiver that is slow or away
//
// Runs never wait. Ended runs wait in a queue of bounded length for the goroutine that sends them. When the queue is full,
// spans are dropped and counted. The exporter logs once that the receiver does not take spans, and once that it takes
// them again.
package traces
