// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podwriter_test

import (
	"context"
	"fmt"
	"log/slog"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/podwriter"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// Two Pods of a Job are created, and one of them is deleted.
func Example() {
	server := fakeapi.New().Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true})
	c, err := client.New(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "report", UID: "report-uid"}}
	owner := podwriter.Owner{Object: job, Kind: object.Resource{Group: "batch", Version: "v1", Plural: "jobs", Kind: "Job", Namespaced: true}}
	writer := podwriter.New(c, events.NewRecorder(c, "job-controller", "example", slog.New(slog.DiscardHandler)))

	var wanted []*corev1.Pod
	for index := range 2 {
		pod := podwriter.FromTemplate(owner, &job.Spec.Template)
		pod.GenerateName = fmt.Sprintf("%s-%d-", job.Name, index)
		wanted = append(wanted, pod)
	}
	made, err := writer.Create(context.Background(), owner, wanted, func(string) bool { return false })
	fmt.Println(len(made), "created", err)
	deleted, err := writer.Delete(context.Background(), owner, made[:1])
	fmt.Println(deleted, err)
	fmt.Println(len(server.Keys()), "left")
	// Output:
	// 2 created <nil>
	// [true] <nil>
	// 1 left
}
