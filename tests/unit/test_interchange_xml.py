"""Hostile and broken XML in all three formats: an error in words, at once, and no other file is read."""

from __future__ import annotations

import pytest

import loopdyn as ld

READERS = {"mujoco": ld.read_mjcf, "robot": ld.read_urdf, "sdf": ld.read_sdf}
each = pytest.mark.parametrize(("tag", "read"), READERS.items())


@each
def test_a_file_of_another_format_is_refused_with_the_way_out(tag, read):
    with pytest.raises(ld.errors.ModelError, match=rf"the outermost element is <other>, not <{tag}>"):
        read("<other/>")


@each
def test_text_that_is_not_xml_is_an_error_with_its_line(tag, read):
    with pytest.raises(ld.errors.ModelError, match=r"text:2: XML: this is not well-formed"):
        read(f"<{tag}>\n<a></b></{tag}>")


@each
def test_entities_are_not_expanded_and_files_not_read(tag, read, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("gold")
    outside = f'<!DOCTYPE {tag} [<!ENTITY x SYSTEM "file://{secret}">]><{tag} name="&x;"/>'
    bomb = f'<!DOCTYPE {tag} [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><{tag} name="&b;"/>'
    for text in (outside, bomb):
        file = tmp_path / "m"
        file.write_text(text)
        with pytest.raises(ld.errors.ModelError, match="DOCTYPE") as caught:
            read(file)
        assert "gold" not in str(caught.value)


@each
def test_endless_nesting_is_refused(tag, read):
    with pytest.raises(ld.errors.ModelError, match="elements inside one another"):
        read(f"<{tag}>" + "<body>" * 100_000)


@each
def test_a_missing_file_a_folder_and_bytes_are_errors_in_words(tag, read, tmp_path):
    with pytest.raises(ld.errors.ModelError, match="there is no such file"):
        read(tmp_path / "no.xml")
    with pytest.raises(ld.errors.ModelError, match="this is a folder"):
        read(tmp_path)
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00<")
    with pytest.raises(ld.errors.ModelError, match="not UTF-8"):
        read(tmp_path / "b")


def test_an_empty_model_is_an_empty_mechanism_or_an_error_in_words():
    assert ld.read_mjcf("<mujoco/>").mechanism.bodies == {}
    with pytest.raises(ld.errors.ModelError, match="there are no links"):
        ld.read_urdf("<robot/>")
    with pytest.raises(ld.errors.ModelError, match="there is no model"):
        ld.read_sdf("<sdf/>")
