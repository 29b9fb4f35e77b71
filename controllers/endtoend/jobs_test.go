// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/cronjob"
	"github.com/setpoint-io/setpoint/controllers/job"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

// A CronJob starts a Job, whose Pod runs to its end on a simulated node. The Job is complete, and
// goes when the history has no room for it.
func TestACronJobRunsAJobToItsEndAndPrunesIt(t *testing.T) {
	c := &cluster{Cluster: shared.Get(t), t: t}
	c.namespace = c.Namespace(t)
	p := c.run(c.Config, managertest.Making(cronjob.New, cronjob.Defaults()), managertest.Making(job.New, job.Defaults()))
	c.manifest(`{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "report"}, "spec": {
		"schedule": "0 0 1 1 *", "timeZone": "Etc/UTC", "jobTemplate": {"spec": {"completions": 2, "parallelism": 2, "completionMode": "Indexed",
		"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "web"}]}}}}}}`)
	// A start is due since a year.
	c.status("cronjob/report", fmt.Sprintf(`{"status": {"lastScheduleTime": %q}}`, time.Now().AddDate(-1, 0, 0).UTC().Format(time.RFC3339)))

	key := object.Key{Namespace: c.namespace, Name: "report"}
	cronJob := controlplanetest.Await(t, p, key, "a Job has succeeded", func(c *batchv1.CronJob) bool {
		return c.Status.LastSuccessfulTime != nil && len(c.Status.Active) == 0
	})
	jobs, _, err := client.For[*batchv1.Job](c.Client).List(t.Context(), client.Selection{Namespace: c.namespace})
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != 1 || jobs[0].Status.Succeeded != 2 || jobs[0].Status.CompletedIndexes != "0,1" ||
		!jobs[0].Status.CompletionTime.Equal(cronJob.Status.LastSuccessfulTime) {
		t.Errorf("the Jobs are %+v", jobs)
	}
	c.kubectl("patch", "cronjob/report", "--patch", `{"spec": {"successfulJobsHistoryLimit": 0}}`)
	c.eventually(func() string {
		left, _, err := client.For[*batchv1.Job](c.Client).List(t.Context(), client.Selection{Namespace: c.namespace})
		switch {
		case err != nil:
			return err.Error()
		case len(left) > 0 && left[0].DeletionTimestamp == nil:
			return "the Job is still there"
		}
		return ""
	})
}
