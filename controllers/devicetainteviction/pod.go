// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devicetainteviction

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/devices"
	"github.com/setpoint-io/setpoint/internal/eviction"
	"github.com/setpoint-io/setpoint/object"
)

// The texts of the condition and of Events. People and tools match on them.
// Source: k8s.io/kubernetes/pkg/controller/devicetainteviction, device_taint_eviction.go.
const (
	conditionReason  = "DeletionByDeviceTaintManager"
	conditionMessage = "Device Taint manager: deleting due to NoExecute taint"
	eventReason      = "DeviceTaintManagerEviction"
)

// reconcilePod has one Pod go if its time is up.
func (r *reconciler) reconcilePod(ctx context.Context, req controller.Request) (controller.Result, error) {
	pod, err := r.pods.Get(req.Key)
	if apierrors.IsNotFound(err) {
		r.planned.forget(req.Key)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	d, err := r.judge(pod, r.world.rulesNow())
	if err != nil {
		return controller.Result{}, err
	}
	if !d.goes {
		if r.planned.forget(req.Key) == pod.UID && pod.DeletionTimestamp == nil {
			r.recorder.Normal(pod, eventReason, "CancelEviction", "Cancelling deletion")
		}
		return controller.Result{}, nil
	}
	r.planned.note(req.Key, pod.UID)
	for _, rule := range d.rules {
		r.updateRule(object.Key{Name: rule.name})
	}
	if left := time.Until(d.when); left > 0 {
		controller.Because(ctx, tolerated(d))
		return controller.Result{After: left}, nil
	}
	return controller.Result{}, r.evict(ctx, pod, d)
}

// judge returns whether a Pod must go by some rules and the taints of slices.
func (r *reconciler) judge(pod *corev1.Pod, rules []*resourcev1.DeviceTaintRule) (verdict, error) {
	v := view{pod: pod, pool: r.world.allOf, rules: rules, groups: r.groups, claims: map[string]*resourcev1.ResourceClaim{}}
	for _, c := range devices.ClaimsOf(pod) {
		if c.Name == "" {
			continue
		}
		claim, err := r.world.claims.Get(object.Key{Namespace: pod.Namespace, Name: c.Name})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return verdict{}, err
		}
		v.claims[c.Name] = claim
	}
	return decide(v), nil
}

// evict says why a Pod goes, and deletes it.
func (r *reconciler) evict(ctx context.Context, pod *corev1.Pod, d verdict) error {
	done, err := eviction.Evict(ctx, r.pods, pod, eviction.Cause{Reason: conditionReason, Message: conditionMessage})
	if err != nil {
		return fmt.Errorf("evicting a Pod that does not tolerate the taint %s of device %s: %w", d.taint.Key, d.device, err)
	}
	r.planned.forget(object.KeyOf(pod))
	if done {
		r.deletions.Add(d.when)
		r.recorder.Normal(pod, eventReason, "Evict", "Marking for deletion")
		for _, rule := range d.rules {
			r.evicted.count(rule.uid)
		}
	}
	return nil
}

// tolerated is the reason why a Pod stays for now.
func tolerated(d verdict) controller.Reason {
	return controller.Reason{
		Code: codeTolerated, Text: "the Pod tolerates the taint {taint} of device {device} until {time}",
		Params: controller.With("taint", d.taint.Key, "device", d.device, "time", d.when.UTC().Format(time.RFC3339)),
		Ends:   "that time, or the end of the taint",
	}
}

// codeTolerated is the code of that reason.
const codeTolerated = "DeviceTaintTolerated"
