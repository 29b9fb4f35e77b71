// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Kubewatch tells of every change of a Pod in the way of kubewatch, on the newest client-go: a
// shared informer without indices, whose handlers put each event, with the objects in it, into a
// rate-limited work queue, and one worker that begins when the cache is full and tells of what it
// takes from there. "go run . watch" in the module above measures Setpoint beside it.
//
// Source: github.com/robusta-dev/kubewatch, pkg/controller/controller.go.
//
// It is kinder to itself than the original: it talks protobuf, logs no line for each event, counts
// no metrics, and takes the annotation and the time of creation from the object of the event. The
// original reads that time from the cache, and so does not tell of a Pod that is gone by then.
//
// A line has what an event of kubewatch has, and the value of one annotation:
//
//	{"kind":"Pod","namespace":"default","name":"web","reason":"Updated","written":"1767225600000000000"}
package main
