// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// This file is empty. The compiler accepts functions without bodies, such as those that the
// tests declare with linknames, only in a package with an assembly file.
