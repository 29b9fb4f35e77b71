// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	names "k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// kindsOf returns what the arguments name, as [watch.Options.Kinds] has it. They are those of "kubectl
// get": kinds with commas between them, then names of objects, each of all these kinds; or kinds with
// names, as in deploy/web.
func kindsOf(args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	if strings.Contains(args[0], "/") {
		return objectsOf(args)
	}
	kinds := strings.Split(args[0], ",")
	for _, kind := range kinds {
		if err := checkKind(kind, args[0]); err != nil {
			return nil, err
		}
	}
	named := args[1:]
	if len(named) == 0 {
		return kinds, nil
	}
	var objects []string
	for _, kind := range kinds {
		for _, name := range named {
			if other, object, both := strings.Cut(name, "/"); both {
				return nil, fmt.Errorf("%q: %s is a kind already; want names alone, as in %s %s, or a kind with each, as in %s/NAME %s/%s",
					name, args[0], args[0], object, args[0], other, object)
			}
			if err := checkObject(name); err != nil {
				return nil, err
			}
			objects = append(objects, kind+"/"+name)
		}
	}
	return objects, nil
}

// objectsOf returns arguments of which each is a kind and a name.
func objectsOf(args []string) ([]string, error) {
	var objects []string
	for _, arg := range args {
		for object := range strings.SplitSeq(arg, ",") {
			kind, name, both := strings.Cut(object, "/")
			if !both {
				return nil, fmt.Errorf("%q: want a kind and a name, as in deploy/%s: the argument before it is one", object, object)
			}
			if err := checkKind(kind, arg); err != nil {
				return nil, err
			}
			if err := checkObject(name); err != nil {
				return nil, err
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// checkKind returns an error for what cannot be a kind. arg is the argument that it is from.
func checkKind(kind, arg string) error {
	switch {
	case kind == "":
		return fmt.Errorf("%q: a kind is missing before or after a comma or a slash", arg)
	case len(validation.IsDNS1123Subdomain(strings.ToLower(kind))) > 0:
		return fmt.Errorf("%q cannot be a kind; want one such as pods, deployments.apps or widgets.example.com", kind)
	}
	return nil
}

// checkObject returns an error for what cannot be the name of an object.
func checkObject(name string) error {
	switch problems := names.IsPathSegmentName(name); {
	case name == "":
		return fmt.Errorf("%q cannot be the name of an object; leave it out for all objects of the kind", name)
	case len(problems) > 0:
		return fmt.Errorf("%q cannot be the name of an object: it %s", name, strings.Join(problems, ", "))
	}
	return nil
}
