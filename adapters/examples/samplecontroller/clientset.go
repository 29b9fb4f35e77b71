// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
)

// clientset is a clientset of Foos, as client-gen writes it.
type clientset struct {
	*discovery.DiscoveryClient
	foos   rest.Interface
	codecs runtime.ParameterCodec
}

func newClientset(config *rest.Config) (*clientset, error) {
	scheme := newScheme()
	c := rest.CopyConfig(config)
	c.GroupVersion = &groupVersion
	c.APIPath = "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentType = runtime.ContentTypeJSON
	foos, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, err
	}
	known, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &clientset{known, foos, runtime.NewParameterCodec(scheme)}, nil
}

// Discovery returns the discovery client of the server.
func (c *clientset) Discovery() discovery.DiscoveryInterface { return c.DiscoveryClient }

// fooInterface is what the program does with Foos.
type fooInterface interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*Foo, error)
	List(ctx context.Context, options metav1.ListOptions) (*FooList, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	Create(ctx context.Context, foo *Foo, options metav1.CreateOptions) (*Foo, error)
	Update(ctx context.Context, foo *Foo, options metav1.UpdateOptions) (*Foo, error)
	UpdateStatus(ctx context.Context, foo *Foo, options metav1.UpdateOptions) (*Foo, error)
}

// Foos returns the Foos of a namespace; "" is all.
func (c *clientset) Foos(namespace string) fooInterface {
	return gentype.NewClientWithList("foos", c.foos, c.codecs, namespace,
		func() *Foo { return &Foo{} }, func() *FooList { return &FooList{} })
}
