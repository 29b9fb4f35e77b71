// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
)

// createHolder creates a StatefulSet of one Pod, with a volume for one node at a time.
func (d *drain) createHolder() {
	d.t.Helper()
	labels := map[string]string{"app": "holder"}
	_, err := client.For[*appsv1.StatefulSet](d.Client).Create(d.t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "holder"},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "holder", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "db"}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}},
		},
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// misplaced says what keeps the volume from being attached where its Pod is, and there alone, "" if
// nothing does.
func (d *drain) misplaced(pods map[types.UID]*corev1.Pod) string {
	node := ""
	for _, pod := range pods {
		if pod.Labels["app"] == "holder" && ready(pod) {
			node = pod.Spec.NodeName
		}
	}
	if node == "" || node == d.node {
		return fmt.Sprintf("the Pod with a volume is not ready at another node than %q, but at %q", d.node, node)
	}
	claim, err := client.For[*corev1.PersistentVolumeClaim](d.Client).Get(d.t.Context(), d.key("data-holder-0"))
	if err != nil {
		return err.Error()
	}
	attachments, err := attachmentsOf(d.stage, map[string]bool{claim.Spec.VolumeName: true})
	if err != nil {
		return err.Error()
	}
	if len(attachments) != 1 || attachments[0].Spec.NodeName != node || !attachments[0].Status.Attached {
		return fmt.Sprintf("the volume of the Pod at %s has %d VolumeAttachments: %+v", node, len(attachments), attachments)
	}
	return ""
}

// attachmentsOf returns the VolumeAttachments of volumes.
func attachmentsOf(s *stage, volumes map[string]bool) (of []*storagev1.VolumeAttachment, err error) {
	all, _, err := client.For[*storagev1.VolumeAttachment](s.Client).List(s.t.Context(), client.Selection{})
	for _, one := range all {
		if name := one.Spec.Source.PersistentVolumeName; name != nil && volumes[*name] {
			of = append(of, one)
		}
	}
	return of, err
}
