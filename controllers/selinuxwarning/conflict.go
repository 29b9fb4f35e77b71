// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// podID is a Pod, and not a later one of its name.
type podID struct {
	key object.Key
	uid types.UID
}

// property is what two Pods differ in. The text is that of Events and metrics.
// Source: k8s.io/kubernetes/pkg/controller/volume/selinuxwarning/cache.
type property string

// Properties.
const (
	changePolicy property = "SELinuxChangePolicy"
	seLinuxLabel property = "SELinuxLabel"
)

// reason returns the reason of an Event about a property.
func (p property) reason() string { return string(p) + "Conflict" }

// conflict is what one Pod is to know about another one that uses the same medium. The other Pod
// has the same conflict the other way round.
type conflict struct {
	property   property
	pod        podID
	value      string
	other      podID
	otherValue string
}

// between returns the conflicts of two Pods that use one medium, first those of a.
func between(a podID, has trait, b podID, differs trait) (found []conflict) {
	if has.policy != differs.policy {
		found = append(found, conflict{changePolicy, a, string(has.policy), b, string(differs.policy)})
	}
	if labelsConflict(has.label, differs.label) {
		found = append(found, conflict{seLinuxLabel, a, has.label, b, differs.label})
	}
	return found
}

// turned returns the conflict as the other Pod has it.
func (c conflict) turned() conflict {
	return conflict{c.property, c.other, c.otherValue, c.pod, c.value}
}

// compare orders conflicts.
func (c conflict) compare(d conflict) int {
	return cmp.Or(
		comparePods(c.pod, d.pod), comparePods(c.other, d.other), cmp.Compare(c.property, d.property),
		cmp.Compare(c.value, d.value), cmp.Compare(c.otherValue, d.otherValue),
	)
}

// comparePods orders Pods by namespace and name, and then by UID.
func comparePods(a, b podID) int {
	return cmp.Or(cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name), cmp.Compare(a.uid, b.uid))
}

// note returns the text of the Event about a conflict, which is upstream's to the letter. Users of
// one namespace learn nothing about Pods of another one from it.
// Source: k8s.io/kubernetes/pkg/controller/volume/selinuxwarning/cache, EventMessage.
func (c conflict) note() string {
	const end = "If both pods land on the same node, only one of them may access the volume."
	if c.pod.key.Namespace != c.other.key.Namespace {
		return fmt.Sprintf(`%[1]s"%[2]s" conflicts with another pod that uses the same volume as this pod with a different %[1]s. %[3]s`, c.property, c.value, end)
	}
	return fmt.Sprintf(`%[1]s "%[2]s" conflicts with pod %[3]s that uses the same volume as this pod with %[1]s "%[4]s". %[5]s`,
		c.property, c.value, c.other.key.Name, c.otherValue, end)
}
