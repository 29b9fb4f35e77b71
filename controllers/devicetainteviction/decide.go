// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devicetainteviction

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/internal/devices"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/internal/seconds"
)

// view is what a decision about a Pod depends on.
type view struct {
	pod *corev1.Pod
	// claims are those whose names the Pod states, as far as they exist.
	claims map[string]*resourcev1.ResourceClaim
	// pool returns all slices of a pool.
	pool  func(driver, pool string) []*resourcev1.ResourceSlice
	rules []*resourcev1.DeviceTaintRule
	// groups has claims count that the Pods of a PodGroup share.
	groups bool
}

// verdict is when and why a Pod must go.
type verdict struct {
	goes   bool
	when   time.Time
	device devices.ID // with the taint that sets the time
	taint  resourcev1.DeviceTaint
	// rules are the rules with a taint that the Pod does not tolerate for ever.
	rules []ruleRef
}

type ruleRef struct {
	name string
	uid  types.UID
}

// decide returns whether a Pod must go. It changes nothing.
func decide(v view) verdict {
	var d verdict
	if v.pod.Spec.NodeName == "" || !podstate.Active(v.pod) {
		return d
	}
	for _, c := range devices.ClaimsOf(v.pod) {
		claim := v.claims[c.Name]
		if claim == nil || claim.Status.Allocation == nil || !c.Is(claim, v.pod, v.groups) || !devices.IsReservedFor(claim, v.pod, v.groups) {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			d.look(v, &claim.Status.Allocation.Devices.Results[i])
		}
	}
	return d
}

// look takes the taints of one device into account.
func (d *verdict) look(v view, result *resourcev1.DeviceRequestAllocationResult) {
	id := devices.IDOf(result)
	if slice, device := devices.Find(devices.Newest(v.pool(id.Driver, id.Pool)), id.Device); device != nil {
		for _, taint := range device.Taints {
			d.weigh(result, taint, slice.CreationTimestamp.Time)
		}
	}
	for _, rule := range v.rules {
		if !devices.Selects(rule, id) {
			continue
		}
		taint := resourcev1.DeviceTaint{
			Key: rule.Spec.Taint.Key, Value: rule.Spec.Taint.Value, Effect: rule.Spec.Taint.Effect, TimeAdded: rule.Spec.Taint.TimeAdded,
		}
		if ref := (ruleRef{rule.Name, rule.UID}); d.weigh(result, taint, rule.CreationTimestamp.Time) && !d.names(ref) {
			d.rules = append(d.rules, ref)
		}
	}
}

// weigh takes one taint of a device into account, and reports whether the Pod must go for it at
// some time. A taint without a time counts from the creation of its object.
func (d *verdict) weigh(result *resourcev1.DeviceRequestAllocationResult, taint resourcev1.DeviceTaint, created time.Time) bool {
	if taint.Effect != resourcev1.DeviceTaintEffectNoExecute {
		return false
	}
	tolerated, forever := tolerance(result.Tolerations, &taint)
	if forever {
		return false
	}
	when := created
	if taint.TimeAdded != nil {
		when = taint.TimeAdded.Time
	}
	if when = when.Add(tolerated); !d.goes || when.Before(d.when) {
		d.goes, d.when, d.device, d.taint = true, when, devices.IDOf(result), taint
	}
	return true
}

func (d *verdict) names(ref ruleRef) bool {
	return slices.Contains(d.rules, ref)
}

// tolerance returns for how long a taint is tolerated. Of several tolerations the shortest counts,
// unless one of them is for ever.
func tolerance(tolerations []resourcev1.DeviceToleration, taint *resourcev1.DeviceTaint) (d time.Duration, forever bool) {
	found := false
	for i := range tolerations {
		t := &tolerations[i]
		if !devices.Tolerates(t, taint) {
			continue
		}
		if t.TolerationSeconds == nil {
			return 0, true
		}
		if within := seconds.Duration(max(*t.TolerationSeconds, 0)); !found || within < d {
			d, found = within, true
		}
	}
	return d, false
}
