// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Buckets is an operator for things outside of the cluster: each ConfigMap with the label
// example.com/bucket=true stands for a bucket of some cloud, which has to exist as long as the
// ConfigMap does.
//
//	export KUBECONFIG=...
//	go run ./examples/buckets --cloud http://127.0.0.1:8080
//	kubectl create configmap photos --from-literal=region=north
//	kubectl label configmap photos example.com/bucket=true
//
// The cloud fails as clouds do: a call times out, and nothing says whether the bucket was made. The
// package controller/worlds is for that:
//
//   - The desired world is the ConfigMaps, the actual world the buckets. A Driver compares both, and
//     names the next operation: create, move or remove.
//   - After a call without an answer, the operator looks at the bucket before it does anything else.
//   - A call that fails is tried again with growing delay, for each bucket by itself. A change of the
//     ConfigMap does not shorten the delay.
//   - A bucket that changes outside is noticed: each is observed again every ten minutes.
//   - A finalizer keeps the ConfigMap until its bucket is gone.
//
// The files:
//
//   - cloud.go is the API of the cloud. It marks the errors after which surely nothing has changed.
//   - controller.go is the Driver and the loop.
package main
