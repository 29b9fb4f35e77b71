// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// Twenty volumes of a Node that are attached within two seconds cost a write each half second. The first is written at
// once, and the last within half a second.
func TestVolumesThatAreAttachedTogetherAreReportedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.with(func() { c.hangs = true }) // the test answers
		c.start()
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprint("data-", i))
			c.addVolume(names[i])
			c.addPod(fmt.Sprint("web-", i), "a", names[i])
		}
		c.addVolume("other")
		c.addPod("web", "b", "other")
		pass(time.Second)
		c.api.Forget()
		answer := func(volume, node string) {
			c.must(fakeapi.Change(c.attachments, object.Key{Name: AttachmentName("h-"+volume, driverName, node)}, func(va *storagev1.VolumeAttachment) { attached(va) }))
		}
		for i, name := range names {
			answer(name, "a")
			if i == 0 {
				synctest.Wait()
				if got := c.reported("a"); len(got) != 1 {
					t.Errorf("after the first volume the status names %q", got)
				}
			}
			if i == 10 {
				answer("other", "b")
				synctest.Wait()
				if got := c.reported("b"); len(got) != 1 {
					t.Errorf("the status of another Node names %q: it waits for the first", got)
				}
			}
			pass(100 * time.Millisecond)
		}
		pass(reportPause)
		if got := c.reported("a"); len(got) != len(names) {
			t.Errorf("%v after the last volume the status names %d of %d", reportPause, len(got), len(names))
		}
		writes := 0
		for _, q := range c.nodes.Requests() {
			if q.Verb == "patch" && q.Key.Name == "a" {
				writes++
			}
		}
		if writes < 4 || writes > 7 {
			t.Errorf("20 volumes within two seconds took %d writes of the status, want about 5", writes)
		}
	})
}

// A run that found the status without the volume has said so. It is over when the status names the volume, not a minute later.
func TestWhatTheStatusDidNotSayIsNotStatedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a")
		p := c.start()
		c.addVolume("data")
		c.addPod("web-0", "a", "data")
		pass(2 * time.Second)
		c.wantMounted("two seconds after the Pod came", "data", "a")
		if reasons := p.Reasons(string(unique("data"))); len(reasons) > 0 {
			t.Errorf("two seconds after the Pod came the reasons are %q", reasons)
		}
	})
}
