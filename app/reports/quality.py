"""PSNR and SSIM of an exported network's result relative to the clean image, as one sentence."""

from __future__ import annotations

from dataclasses import dataclass

from app.reports.comparison import ImageArray, figures, psnr_text, ssim_text
from designer.texts import tr


@dataclass(frozen=True, eq=False)
class Quality:
    """The result and the clean image, N x C x H x W, and the names of their tensors."""

    result: str
    clean: str
    images: tuple[ImageArray, ImageArray]

    def text(self) -> str:
        """Measure them; this takes about a second for 10 megapixels."""
        result, clean = self.images
        found = figures(clean, result)
        return tr(
            "PSNR {psnr} dB, SSIM {ssim}: {result} against {clean}",
            result=self.result,
            clean=self.clean,
            psnr=psnr_text(found.psnr),
            ssim=ssim_text(found.ssim),
        )
