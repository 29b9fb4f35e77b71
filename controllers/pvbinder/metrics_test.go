// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// measured runs the controller and returns its metrics.
func (c *cluster) measured() prometheus.Collector {
	c.t.Helper()
	var metrics prometheus.Collector
	managertest.Run(c.t, c.api.Config(), managertest.MakingMetrics(New, Defaults(), &metrics))
	synctest.Wait()
	return metrics
}

// wantSeries fails the test unless the series of the controller that are not 0 are these.
func (c *cluster) wantSeries(metrics prometheus.Collector, want map[string]float64) {
	c.t.Helper()
	got := managertest.Series(c.t, metrics)
	maps.DeleteFunc(got, func(_ string, value float64) bool { return value == 0 })
	if !maps.Equal(got, want) {
		c.t.Errorf("the series are %v, want %v", got, want)
	}
}

func TestClaimsAndVolumesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		metrics := c.measured()
		c.wantSeries(metrics, map[string]float64{})
		c.add(newVolume("one", "1Gi"))
		c.add(newVolume("files", "1Gi", func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs", Path: "/"}}
			v.Spec.StorageClassName = "nfs"
		}))
		c.add(newClaim("bound", ofClass("")))
		c.add(newClaim("waits", ofClass("gold"), func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = new("fast") }))
		c.wantBound("bound", "one")
		want := map[string]float64{
			`pv_collector_bound_pv_count{storage_class=""}`:                                                      1,
			`pv_collector_unbound_pv_count{storage_class="nfs"}`:                                                 1,
			`pv_collector_total_pv_count{plugin_name="kubernetes.io/nfs",volume_mode="Filesystem"}`:              1,
			`pv_collector_total_pv_count{plugin_name="` + pluginOf(c, "one") + `",volume_mode="Filesystem"}`:     1,
			`pv_collector_bound_pvc_count{namespace="ns",storage_class="",volume_attributes_class=""}`:           1,
			`pv_collector_unbound_pvc_count{namespace="ns",storage_class="gold",volume_attributes_class="fast"}`: 1,
		}
		c.wantSeries(metrics, want)
		c.claims.Remove(claimKey("waits"))
		synctest.Wait()
		delete(want, `pv_collector_unbound_pvc_count{namespace="ns",storage_class="gold",volume_attributes_class="fast"}`)
		c.wantSeries(metrics, want)
	})
}

// pluginOf returns the plugin of a volume as metrics name it.
func pluginOf(c *cluster, volume string) string {
	if plugin := volumes.PluginOf(c.volume(volume)); plugin != "" {
		return plugin
	}
	return unknownPlugin
}

func TestAVolumeThatADriverMakesIsTimedUntilItIsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		refusals := 0
		c.claims.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" && refusals < 2 {
				refusals++
				return fakeapi.Forbidden("persistentvolumeclaims")
			}
			return nil
		})
		metrics := c.measured()
		operation := func(name string) string {
			return name + `{operation_name="provision",plugin_name="csi.example.com"}`
		}
		c.add(newClass("fast", "csi.example.com", immediate))
		c.add(newClaim("data", ofClass("fast")))
		pass(time.Minute)
		got := managertest.Series(t, metrics)
		if got[operation("volume_operation_errors_total")] != 2 || got[operation("volume_operation_total_errors")] != 2 || got[operation("volume_operation_total_seconds")] != 0 {
			t.Errorf("before the volume is made the series are %v", got)
		}
		c.add(made(c.claim("data"), "1Gi"))
		c.wantBound("data", volumes.NameFor(string(c.claim("data").UID)))
		pass(time.Hour)
		if got := managertest.Series(t, metrics); got[operation("volume_operation_total_seconds")] != 1 {
			t.Errorf("after the volume is bound the series are %v", got)
		}
	})
}

func TestAVolumeThatADriverDeletesIsTimedUntilItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		metrics := c.measured()
		c.add(newClass("fast", "csi.example.com", immediate))
		c.add(newClaim("data", ofClass("fast")))
		claim := c.claim("data")
		volume := made(claim, "1Gi")
		c.add(volume)
		c.wantBound("data", volume.Name)
		c.claims.Remove(claimKey("data"))
		pass(time.Minute)
		c.wantPhase(volume.Name, corev1.VolumeReleased)
		const deletion = `volume_operation_total_seconds{operation_name="delete",plugin_name="csi.example.com"}`
		if got := managertest.Series(t, metrics)[deletion]; got != 0 {
			t.Errorf("a deletion that has not ended is observed %v times", got)
		}
		c.volumes.Remove(object.Key{Name: volume.Name})
		pass(time.Second)
		if got := managertest.Series(t, metrics)[deletion]; got != 1 {
			t.Errorf("the deletion is observed %v times, want once", got)
		}
	})
}

func TestClaimsThatGetTheDefaultClassLaterAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		refuse := true
		c.claims.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" && refuse {
				refuse = false
				return fakeapi.Forbidden("persistentvolumeclaims")
			}
			return nil
		})
		metrics := c.measured()
		c.add(newClaim("unset"))
		c.add(newClass("fast", "csi.example.com", immediate, isDefault))
		pass(time.Minute)
		got := managertest.Series(t, metrics)
		if total, failed := got["retroactive_storageclass_total"], got["retroactive_storageclass_errors_total"]; total != 2 || failed != 1 {
			t.Errorf("attempts to give a class: %v, of which %v failed; want 2 and 1", total, failed)
		}
	})
}
