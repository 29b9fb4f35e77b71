// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
)

// release is the number of a template of Pods, which stands in the tag of their image.
type release int

func (r release) image() string { return fmt.Sprintf("web:%d", int(r)) }

// template returns the template of a release. Its Pods take a moment to become ready, so that a
// rollout has a middle.
func (r release) template(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"sim.setpoint.io/ready-after": "20ms+300ms"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: r.image()}}},
	}
}

// patch returns the change of an object with a template to this release.
func (r release) patch() (client.Patch, error) {
	return client.StrategicPatch(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "web", "image": r.image()}},
	}}}})
}

// wrong says in what the Pods are not those that are wanted: as many ready Pods of this release,
// all of one owner, and no others, not even terminating ones.
func (r release) wrong(pods map[types.UID]*corev1.Pod, want int) string {
	owners := map[types.UID]bool{}
	for _, pod := range pods {
		owner := metav1.GetControllerOf(pod)
		if owner == nil || !ready(pod) || !alive(pod) || pod.Spec.Containers[0].Image != r.image() {
			return fmt.Sprintf("Pod %s is not a ready one of %s", pod.Name, r.image())
		}
		owners[owner.UID] = true
	}
	if len(pods) != want || len(owners) != 1 {
		return fmt.Sprintf("%d Pods of %d owners, want %d of one", len(pods), len(owners), want)
	}
	return ""
}
