// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	_ "embed"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/manager"
)

// upstreamMetrics has a line for each metric of the controllers of kube-controller-manager 1.37: its
// name, its labels, its stability, the buckets of a histogram, and "missing" if no controller here has it.
// Source: the packages below k8s.io/kubernetes/pkg/controller that declare metrics,
// k8s.io/kubernetes/pkg/volume/util, k8s.io/endpointslice/metrics and
// k8s.io/dynamic-resource-allocation/resourceclaim/metrics.
//
//go:embed testdata/kube-controller-manager-metrics.txt
var upstreamMetrics string

// described matches what a prometheus.Desc says of itself.
var described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// metric is what a controller says of one of its metrics.
type metric struct {
	labels  string
	buckets []float64 // of a histogram
}

// metricsOf returns the metrics of all controllers, by their names.
func metricsOf(t *testing.T) map[string]metric {
	t.Helper()
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	cluster, all := everything(t), map[string]metric{}
	for _, d := range Known() {
		d.Learn(cluster)
		switchOn(t, d)
		c, err := d.New(mgr)
		if err != nil {
			t.Fatal(err)
		}
		collector, has := c.(prometheus.Collector)
		if !has {
			continue
		}
		var buckets map[string][]float64
		if h, has := c.(interface{ Buckets() map[string][]float64 }); has {
			buckets = h.Buckets()
		}
		descs := make(chan *prometheus.Desc, 100)
		collector.Describe(descs)
		close(descs)
		for desc := range descs {
			is := described.FindStringSubmatch(desc.String())
			if is == nil {
				t.Fatalf("%s is not understood", desc)
			}
			labels := strings.FieldsFunc(is[2], func(r rune) bool { return r == ',' || r == ' ' })
			slices.Sort(labels)
			all[is[1]] = metric{strings.Join(labels, ","), buckets[is[1]]}
		}
	}
	return all
}

// bounds returns the upper bounds that a field of the list describes: one by one, or by the
// arguments of prometheus.ExponentialBuckets.
func bounds(t *testing.T, field string) (all []float64) {
	t.Helper()
	list, found := strings.CutPrefix(field, "exponential(")
	for number := range strings.SplitSeq(strings.TrimSuffix(list, ")"), ",") {
		f, err := strconv.ParseFloat(number, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	if found {
		return prometheus.ExponentialBuckets(all[0], all[1], int(all[2]))
	}
	return all
}

func TestMetricsHaveTheNamesLabelsAndBucketsOfKubeControllerManager(t *testing.T) {
	have := metricsOf(t)
	document, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(document), "\n### Of single controllers\n")
	if !found {
		t.Fatal("docs/metrics.md does not have the section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	present, absent, _ := strings.Cut(section, "\n### Missing\n") // there is such a section while metrics are missing
	upstream := map[string]bool{}
	for line := range strings.Lines(upstreamMetrics) {
		fields := strings.Fields(line)
		name, labels, stability := fields[0], fields[1], fields[2]
		missing := slices.Contains(fields[3:], "missing")
		upstream[name] = true
		got, has := have[name]
		if missing == has {
			t.Errorf("%s (%s): here it is %v, and the list says that it is missing: %v", name, stability, has, missing)
		}
		if has && got.labels != strings.Trim(labels, "-") {
			t.Errorf("%s has the labels %q, want %q", name, got.labels, labels)
		}
		var buckets []float64
		if len(fields) > 3 {
			if field, found := strings.CutPrefix(fields[3], "buckets="); found {
				buckets = bounds(t, field)
			}
		}
		if has && !slices.Equal(got.buckets, buckets) {
			t.Errorf("%s has the buckets %v, want %v", name, got.buckets, buckets)
		}
		in := present
		if missing {
			in = absent
		}
		if !strings.Contains(in, "`"+name+"`") {
			t.Errorf("docs/metrics.md does not have %s (%s) in the right section", name, stability)
		}
	}
	for name := range have {
		if !upstream[name] && !strings.HasPrefix(name, "setpoint_") {
			t.Errorf("kube-controller-manager does not have %s", name)
		}
		if !strings.Contains(string(document), "`"+name+"`") {
			t.Errorf("docs/metrics.md does not have %s", name)
		}
	}
}
