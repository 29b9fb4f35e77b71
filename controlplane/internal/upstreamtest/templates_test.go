// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package upstreamtest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

// fill fills an object with random values. Each pointer, slice and map is empty in every other
// case.
func fill(g generator, o any) {
	randfill.New().RandSource(source{g}).NilChance(0.5).NumElements(1, 2).MaxDepth(20).Funcs(
		func(q *resource.Quantity, _ randfill.Continue) {
			*q = resource.MustParse(fmt.Sprintf("%d%s", g.IntN(5000), one(g, "", "m", "n", "Ki", "Gi", "k")))
		},
		func(t *metav1.Time, _ randfill.Continue) { *t = metav1.NewTime(time.Unix(g.Int64N(1<<31), 0).UTC()) },
		func(v *intstr.IntOrString, _ randfill.Continue) {
			*v = one(g, intstr.FromInt32(80), intstr.FromString("http"))
		},
		func(f *metav1.FieldsV1, _ randfill.Continue) { *f = metav1.FieldsV1{} },
		func(i *int64, _ randfill.Continue) {
			*i = one(g, g.Int64N(100), g.Int64N(100), g.Int64N(1<<50), g.Int64())
		},
		func(m *metav1.ObjectMeta, cont randfill.Continue) {
			*m = metav1.ObjectMeta{Name: one(g, "", "web")}
			cont.Fill(&m.Labels)
			cont.Fill(&m.Annotations)
		},
		func(c *corev1.EphemeralContainerCommon, cont randfill.Continue) {
			cont.FillNoCustom(c)
			c.Image = image(g)
		},
		func(c *corev1.Container, cont randfill.Continue) {
			cont.FillNoCustom(c)
			c.Image = image(g)
		},
		func(v *corev1.ImageVolumeSource, cont randfill.Continue) {
			cont.FillNoCustom(v)
			v.Reference = image(g)
		},
	).Fill(o)
}

// image draws the name of an image.
func image(g generator) string {
	return one(g, "web", "registry.example.org:5000/web", "shop/web") + one(g, "", ":latest", ":1.2.3", ":latest-1") +
		one(g, "", "", "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
}

// source is a generator for randfill.
type source struct{ generator }

func (s source) Int63() int64 { return s.Int64() }

func (s source) Seed(int64) { panic("a generator has its seed already") }
