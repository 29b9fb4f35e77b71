// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controlplane/internal/drivers"
)

// The Event about an annotation that cannot be read.
const (
	reasonInvalid = "InvalidSimulation"
	actionPublish = "Publish"
)

// newPublisher returns what keeps one ResourceSlice for each simulated Node.
func newPublisher(p cache.Provider, recorder *events.Recorder, log *slog.Logger) *drivers.PerNode[*resourcev1.ResourceSlice] {
	return drivers.NewPerNode(p, recorder, log, drivers.Published[*resourcev1.ResourceSlice]{
		Kind:   "ResourceSlice",
		Name:   sliceName,
		NodeOf: func(name string) (string, bool) { return strings.CutSuffix(name, "-"+Driver) },
		Want: func(node *corev1.Node) (*resourcev1.ResourceSlice, []string) {
			with := inventory()
			problems := taint(with, node.Annotations[TaintAnnotation])
			return newSlice(node, with), problems
		},
		Merge: mergeSlice,
		Without: func(has *resourcev1.ResourceSlice) (next *resourcev1.ResourceSlice, rest, ours bool) {
			return nil, false, has.Spec.Driver == Driver
		},
		Reason: reasonInvalid, Action: actionPublish,
	})
}

// mergeSlice returns has with the devices and the owner of want. Each write begins a new generation of the pool.
func mergeSlice(has, want *resourcev1.ResourceSlice) (next *resourcev1.ResourceSlice, differs bool) {
	keepTimes(want.Spec.Devices, has.Spec.Devices)
	if apiequality.Semantic.DeepEqual(has.Spec.Devices, want.Spec.Devices) && apiequality.Semantic.DeepEqual(has.OwnerReferences, want.OwnerReferences) {
		return nil, false
	}
	next = has.DeepCopy()
	next.OwnerReferences, next.Spec.Devices = want.OwnerReferences, want.Spec.Devices
	next.Spec.Pool.Generation++
	return next, true
}
