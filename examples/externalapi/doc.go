// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Externalapi is a controller that calls an HTTP API which is slow and fails: it gives
// Services of type LoadBalancer and class example.com/balancer a balancer of some
// provider, and removes the balancer when the Service goes.
//
//	export KUBECONFIG=...
//	go run ./examples/externalapi --provider http://127.0.0.1:8080
//
// What the provider answers decides what comes next:
//
//   - An address goes into the status of the Service.
//   - With a Retry-After the Service is reconciled again after that time, and not before:
//     the answer is a Result, not an error. A balancer that is being built (202) and too
//     many requests (429) come so.
//   - Other refusals (4xx) are final. A retry would not help before the Service changes,
//     so the error is Terminal.
//   - Everything else, no answer in time above all, is tried again with growing delay.
//
// A condition in the status says which of these it is, and when the next try is. Each
// call has a deadline, and so has each run. There are many workers: one that waits costs
// a goroutine, and as many Services as hang at a time delay no other.
//
//   - provider.go is the API, and turns answers into errors of three kinds.
//   - controller.go is the loop, and turns those into results.
//
// It has 236 lines of code, where the same program has 325 on client-go and 242 on
// controller-runtime.
package main
