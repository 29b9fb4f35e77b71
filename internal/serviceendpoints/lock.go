// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceendpoints

// LeaderElection is the annotation of Endpoints that are the lock of a leader election. Nothing
// makes such locks any more, and those that there are have no Service.
// Source: k8s.io/client-go/tools/leaderelection/resourcelock.
const LeaderElection = "control-plane.alpha.kubernetes.io/leader"
