// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/setpoint-io/setpoint/controlplane/nodes"
)

// TaintAnnotation is the annotation of a Node that gives its devices taints. Its value has
// taints with commas between them. Each is DEVICE=KEY:EFFECT or DEVICE=KEY=VALUE:EFFECT, such as
// "gpu-0=unhealthy:NoExecute".
const TaintAnnotation = nodes.Prefix + "device-taint"

// maxTaints is how many taints a device may have.
// Source: k8s.io/api/resource/v1, DeviceTaintsMaxLength.
const maxTaints = resourcev1.DeviceTaintsMaxLength

var effects = []resourcev1.DeviceTaintEffect{
	resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNone,
}

// taint gives the devices the taints of an annotation's value. A taint that cannot be read counts
// as not given, and problems has a sentence for each.
func taint(all []resourcev1.Device, value string) (problems []string) {
	if value == "" {
		return nil
	}
	for text := range strings.SplitSeq(value, ",") {
		if err := taintOne(all, strings.TrimSpace(text)); err != nil {
			problems = append(problems, fmt.Sprintf("a taint of annotation %s is ignored: %v", TaintAnnotation, err))
		}
	}
	return problems
}

func taintOne(all []resourcev1.Device, text string) error {
	name, rest, hasDevice := strings.Cut(text, "=")
	keyAndValue, effect, hasEffect := strings.Cut(rest, ":")
	if !hasDevice || !hasEffect {
		return fmt.Errorf("%q is not DEVICE=KEY:EFFECT or DEVICE=KEY=VALUE:EFFECT, such as %q", text, "gpu-0=unhealthy:NoExecute")
	}
	i := slices.IndexFunc(all, func(d resourcev1.Device) bool { return d.Name == name })
	if i < 0 {
		return fmt.Errorf("%q: the node has no device %q; it has %s to %s", text, name, all[0].Name, all[len(all)-1].Name)
	}
	key, value, _ := strings.Cut(keyAndValue, "=")
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return fmt.Errorf("%q: the key %q: %s", text, key, wrong[0])
	}
	if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
		return fmt.Errorf("%q: the value %q: %s", text, value, wrong[0])
	}
	taint := resourcev1.DeviceTaint{Key: key, Value: value, Effect: resourcev1.DeviceTaintEffect(effect)}
	if !slices.Contains(effects, taint.Effect) {
		return fmt.Errorf("%q: the effect %q is not NoSchedule, NoExecute or None", text, effect)
	}
	if slices.ContainsFunc(all[i].Taints, func(t resourcev1.DeviceTaint) bool { return t.Key == taint.Key && t.Effect == taint.Effect }) {
		return fmt.Errorf("%q: %s has a taint with this key and effect already", text, name)
	}
	if len(all[i].Taints) == maxTaints {
		return fmt.Errorf("%q: a device has at most %d taints", text, maxTaints)
	}
	all[i].Taints = append(all[i].Taints, taint)
	return nil
}

// keepTimes gives taints that a slice has already the time at which they came. The API server
// sets the time of a new one.
func keepTimes(wanted, had []resourcev1.Device) {
	for i := range wanted {
		j := slices.IndexFunc(had, func(d resourcev1.Device) bool { return d.Name == wanted[i].Name })
		if j < 0 {
			continue
		}
		for t := range wanted[i].Taints {
			taint := &wanted[i].Taints[t]
			for _, old := range had[j].Taints {
				if old.Key == taint.Key && old.Value == taint.Value && old.Effect == taint.Effect {
					taint.TimeAdded = old.TimeAdded
				}
			}
		}
	}
}
