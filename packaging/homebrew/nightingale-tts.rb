# tools/fill_recipes.py fills in the address and the digest of a release.
class NightingaleTts < Formula
  include Language::Python::Virtualenv

  desc "Real-time, multilingual text-to-speech on your own machine"
  homepage "https://pypi.org/project/nightingale-tts/"
  url "https://files.pythonhosted.org/packages/source/n/nightingale-tts/nightingale_tts-0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on arch: :arm64
  depends_on "libsndfile"
  depends_on macos: :sonoma
  depends_on "portaudio"
  depends_on "python@3.13"

  def install
    # Its dependencies are wheels, MLX among them, which pip takes from PyPI.
    virtualenv_create(libexec, "python3.13")
    system "python3.13", "-m", "pip", "--python=#{libexec}/bin/python", "install",
           "#{buildpath}[server,playback]"
    bin.install_symlink libexec/"bin/nightingale"
    generate_completions_from_executable(bin/"nightingale", "completion")
  end

  service do
    run [opt_bin/"nightingale", "serve"]
    keep_alive true
    log_path var/"log/nightingale.log"
    error_log_path var/"log/nightingale.log"
  end

  test do
    system bin/"nightingale", "say", "Hello there.", "-o", testpath/"hello.wav"
    assert_path_exists testpath/"hello.wav"
  end
end
