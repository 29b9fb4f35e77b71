// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourcepoolstatusrequest answers ResourcePoolStatusRequests: how many devices the pools
// of a driver have, and how many of them are free.
//
//	kubectl create -f request.yaml ──▶ status, written once ──▶ deleted an hour later
//
// # What it watches and writes
//
// It watches ResourcePoolStatusRequests, ResourceSlices, ResourceClaims and DeviceTaintRules. It
// writes the status of requests, and deletes old requests. The API of requests is alpha: a server
// serves it with the feature gate DRAResourcePoolStatus and --runtime-config
// resource.k8s.io/v1alpha3=true. Without that gate the controller is not started.
//
// # What holds
//
//   - The status of a request is written once. It counts what the caches show at that moment.
//   - A request waits for a driver that has not published all slices of a pool. The next slice of
//     the driver starts another run.
//   - Of the slices of a pool, those of the newest generation count.
//   - A device is allocated if any claim has it, except for admin access, however many claims
//     share it. It is unavailable with a NoSchedule or NoExecute taint.
//   - A device that consumes counters is one partition of several. For each type of partition the
//     status says how many more of them fit, by what the counters have left.
//   - A request is deleted an hour after its answer, and after a day without one, by its UID.
//
// # What differs from kube-controller-manager
//
// The status is that of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/resourcepoolstatusrequest), with these differences:
//
//   - A pool that is incomplete is waited for. Upstream gives such a request up after five tries
//     within a second, and deletes it after a day.
//   - A request goes when its time is over, not within ten minutes after that.
package resourcepoolstatusrequest
