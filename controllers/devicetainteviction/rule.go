// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devicetainteviction

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/devices"
	"github.com/setpoint-io/setpoint/object"
)

// statusPeriod is the shortest time between two writes of the status of a rule, unless its spec
// changes.
// Source: k8s.io/kubernetes/pkg/controller/devicetainteviction, ruleStatusPeriod.
const statusPeriod = 10 * time.Second

// reconcileRule brings the condition EvictionInProgress of one rule up to date.
func (r *reconciler) reconcileRule(ctx context.Context, req controller.Request) (controller.Result, error) {
	rule, err := r.world.rules.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	var has metav1.Condition
	if c := meta.FindStatusCondition(rule.Status.Conditions, resourcev1.DeviceTaintConditionEvictionInProgress); c != nil {
		has = *c
	}
	// The transition time is that of the last write, since each change of the message moves it.
	now := time.Now()
	if since := now.Sub(has.LastTransitionTime.Time); has.ObservedGeneration == rule.Generation && since < statusPeriod {
		return controller.Result{After: statusPeriod - since}, nil
	}
	n, err := r.survey(rule)
	if err != nil {
		return controller.Result{}, err
	}
	next := conditionOf(rule, n)
	if next.LastTransitionTime = has.LastTransitionTime; next != has {
		next.LastTransitionTime = metav1.NewTime(now)
		if err := r.writeCondition(ctx, rule, next); err != nil {
			return controller.Result{}, err
		}
	}
	if next.Status == metav1.ConditionTrue {
		return controller.Result{After: statusPeriod}, nil
	}
	return controller.Result{}, nil
}

// writeCondition applies the condition of a rule.
func (r *reconciler) writeCondition(ctx context.Context, rule *resourcev1.DeviceTaintRule, c metav1.Condition) error {
	data, err := json.Marshal(map[string]any{
		"apiVersion": resourcev1.SchemeGroupVersion.String(), "kind": "DeviceTaintRule",
		"metadata": map[string]any{"name": rule.Name, "uid": rule.UID}, // another rule of that name is not changed
		"status":   map[string]any{"conditions": []metav1.Condition{c}},
	})
	if err != nil {
		return err
	}
	patch := client.Patch{Type: types.ApplyPatchType, Data: data}
	_, err = r.world.rules.Sub("status").Patch(ctx, object.KeyOf(rule), patch, client.FieldManager(Name), client.Force())
	switch {
	case client.AbsentAt(err, object.KeyOf(rule)):
		return nil // it went meanwhile, and another one may have its name
	case err != nil: // a conflict too: other writes came first, and their events start no run
		return fmt.Errorf("writing the condition of DeviceTaintRule %s: %w", rule.Name, err)
	}
	return nil
}

// numbers are what the condition of a rule says.
type numbers struct {
	published, allocated int // devices that the rule selects, in slices and in claims
	pods, namespaces     int // that must go for the rule, or would
	evicted              int // since the start
}

// survey counts for a rule. For the effect None it counts what the effect NoExecute would do.
func (r *reconciler) survey(rule *resourcev1.DeviceTaintRule) (numbers, error) {
	n := numbers{evicted: r.evicted.of(rule.UID)}
	value, some := ruleValue(rule)
	effect := rule.Spec.Taint.Effect
	if effect == resourcev1.DeviceTaintEffectNone {
		n.published = r.publishedFor(rule)
		rule = rule.DeepCopy()
		rule.Spec.Taint.Effect = resourcev1.DeviceTaintEffectNoExecute
	}
	if !some || effect != resourcev1.DeviceTaintEffectNone && effect != resourcev1.DeviceTaintEffectNoExecute {
		return n, nil
	}
	pods, namespaces := map[object.Key]bool{}, map[string]bool{}
	for key, item := range r.world.byDevice.Find(value) {
		claim, err := item.Object()
		if err != nil {
			return n, fmt.Errorf("reading claim %s: %w", key, err)
		}
		for i := range claim.Status.Allocation.Devices.Results {
			if devices.Selects(rule, devices.IDOf(&claim.Status.Allocation.Devices.Results[i])) {
				n.allocated++
			}
		}
		for pod, item := range r.users.OfClaim(key) {
			if pods[pod] {
				continue
			}
			o, err := item.Object()
			if err != nil {
				return n, fmt.Errorf("reading Pod %s: %w", pod, err)
			}
			d, err := r.judge(o, []*resourcev1.DeviceTaintRule{rule})
			if err != nil {
				return n, err
			}
			if len(d.rules) > 0 {
				pods[pod], namespaces[pod.Namespace] = true, true
			}
		}
	}
	n.pods, n.namespaces = len(pods), len(namespaces)
	return n, nil
}

// publishedFor counts the devices in slices that a rule selects.
func (r *reconciler) publishedFor(rule *resourcev1.DeviceTaintRule) (n int) {
	for pool := range r.world.byPool.Values(r.world.slices.Snapshot()) {
		var all []*resourcev1.ResourceSlice
		for _, item := range r.world.byPool.Find(pool) {
			if slice, err := item.Object(); err == nil { // the index has logged the others
				all = append(all, slice)
			}
		}
		for _, slice := range devices.Newest(all) {
			for _, device := range slice.Spec.Devices {
				if devices.Selects(rule, devices.ID{Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: device.Name}) {
					n++
				}
			}
		}
	}
	return n
}
